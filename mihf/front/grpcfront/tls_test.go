package grpcfront

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	mihv1 "mihf.dev/proto/mih/v1"
)

// authority signs certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	a.cert, a.key = sign(t, "authority", nil)
	a.pool.AddCert(a.cert)
	return a
}

func sign(t *testing.T, name string, by *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: by == nil, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	parent, signer := tmpl, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func (a *authority) keyPair(t *testing.T, name string) tls.Certificate {
	t.Helper()
	cert, key := sign(t, name, a)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func TestTCPOnlyWithClientCertificates(t *testing.T) {
	ca := newAuthority(t)
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	for name, cfg := range map[string]*tls.Config{
		"no TLS":                   nil,
		"no client certificates":   {Certificates: []tls.Certificate{ca.keyPair(t, "broker")}},
		"certificates of anyone":   {ClientAuth: tls.RequireAnyClientCert, ClientCAs: ca.pool},
		"certificates of no known": {ClientAuth: tls.RequireAndVerifyClientCert},
	} {
		if _, err := New(Options{Broker: newFake(), Listeners: []net.Listener{ln}, TLS: cfg}); err == nil {
			t.Errorf("%s: want it refused", name)
		}
	}
}

func TestCallerIsFromTheCertificate(t *testing.T) {
	ca := newAuthority(t)
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := newFake()
	serve(t, b, Options{Listeners: []net.Listener{ln}, TLS: &tls.Config{
		Certificates: []tls.Certificate{ca.keyPair(t, "broker")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool, MinVersion: tls.VersionTLS13,
	}})
	ask := func(creds credentials.TransportCredentials) error {
		conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(creds))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, err = mihv1.NewAdminServiceClient(conn).Status(t.Context(), &mihv1.StatusRequest{})
		return err
	}
	with := func(from *authority, name string) credentials.TransportCredentials {
		return credentials.NewTLS(&tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{from.keyPair(t, name)}, MinVersion: tls.VersionTLS13})
	}
	for _, name := range []string{"operator", "someone", ""} {
		if err := ask(with(ca, name)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := b.lastCaller(); got.Name != name || got.UID.Known() || got.Front != "grpc" {
			t.Errorf("%s: caller %+v", name, got)
		}
	}
	wantCode(t, "another authority's certificate", ask(with(newAuthority(t), "operator")), codes.Unavailable)
	wantCode(t, "no certificate", ask(credentials.NewTLS(&tls.Config{RootCAs: ca.pool, MinVersion: tls.VersionTLS13})), codes.Unavailable)
	wantCode(t, "no TLS", ask(insecure.NewCredentials()), codes.Unavailable)
}
