package main

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"mihf.dev/cmd/internal/wiring"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/daemon"
)

// TestTCP speaks to a daemon over mutual TLS.
func TestTCP(t *testing.T) {
	dir := t.TempDir()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // the daemon opens it itself
	c := config.Defaults()
	c.Node.Name, c.Sensors = "far", config.Sensors{}
	c.GRPC.Socket, c.GRPC.Listen = filepath.Join(dir, "s"), address
	c.GRPC.Cert, c.GRPC.Key = identity(t, dir, "daemon")
	c.GRPC.ClientCA, _ = identity(t, dir, "ours")
	identity(t, dir, "stranger")
	a, err := wiring.Assemble(&c, wiring.Options{Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- daemon.Serve(ctx, nil, nil, a.Tasks...) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Run("scripts", func(t *testing.T) {
		testscript.Run(t, testscript.Params{Dir: "testdata/tls", Setup: func(e *testscript.Env) error {
			e.Setenv("TCP", address)
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			return os.CopyFS(e.WorkDir, os.DirFS(filepath.Join(dir, "pem")))
		}})
	})
}

// identity writes who.pem, a certificate for 127.0.0.1 that nobody else signed, and who.key.
func identity(t *testing.T, dir, who string) (cert, key string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(nil, form, form, public, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(file, kind string, der []byte) string {
		path := filepath.Join(dir, "pem", file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write(who+".pem", "CERTIFICATE", signed), write(who+".key", "PRIVATE KEY", secret)
}
