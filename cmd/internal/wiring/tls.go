package wiring

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"mihf.dev/mihf/config"
)

// TLS returns the gRPC front's side of mutual TLS, or nil where it doesn't listen on TCP.
func TLS(c *config.GRPC) (*tls.Config, error) {
	if c.Listen == "" {
		return nil, nil
	}
	t, pool, err := readPEM([3]pemFile{{"grpc.cert", c.Cert}, {"grpc.key", c.Key}, {"grpc.client_ca", c.ClientCA}})
	if err != nil {
		return nil, err
	}
	t.ClientAuth, t.ClientCAs = tls.RequireAndVerifyClientCert, pool
	return t, nil
}

// ClientTLS returns a client's side of TLS, of the PEM files of its certificate, the
// certificate's key, and the authority of the other side's certificate. Without a
// certificate none is shown; without an authority the system's count. Errors name them as
// the flags --cert, --key and --ca.
func ClientTLS(cert, key, ca string) (*tls.Config, error) {
	t, pool, err := readPEM([3]pemFile{{"--cert", cert}, {"--key", key}, {"--ca", ca}})
	if err != nil {
		return nil, err
	}
	t.RootCAs = pool
	return t, nil
}

// pemFile is a file with the name that its user knows it by.
type pemFile struct{ name, path string }

// readPEM reads a certificate, its key, and the authorities of the other side. What has no
// path is left out.
func readPEM(f [3]pemFile) (*tls.Config, *x509.CertPool, error) {
	cert, key, ca := f[0], f[1], f[2]
	t := &tls.Config{MinVersion: tls.VersionTLS13}
	if cert.path != "" || key.path != "" {
		pair, err := tls.LoadX509KeyPair(cert.path, key.path)
		if err != nil {
			return nil, nil, fmt.Errorf("%s %s, %s %s: %w", cert.name, cert.path, key.name, key.path, err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	if ca.path == "" {
		return t, nil, nil
	}
	pem, err := os.ReadFile(ca.path)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", ca.name, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, nil, fmt.Errorf("%s %s: has no certificate in PEM form", ca.name, ca.path)
	}
	return t, pool, nil
}
