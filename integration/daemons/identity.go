package daemons

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Identity writes a certificate that nobody else signed, and its key, as who.pem and
// who.key into the folder, which it makes. The certificate has the common name who, is good
// for servers on the address and for clients, is an authority, and lasts an hour.
func Identity(t testing.TB, dir, who, address string) (cert, key string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal("daemons:", err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: who},
		IPAddresses: []net.IP{net.ParseIP(address)}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(nil, form, form, public, private)
	if err != nil {
		t.Fatal("daemons:", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal("daemons:", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal("daemons:", err)
	}
	write := func(file, kind string, der []byte) string {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal("daemons:", err)
		}
		return path
	}
	return write(who+".pem", "CERTIFICATE", signed), write(who+".key", "PRIVATE KEY", secret)
}
