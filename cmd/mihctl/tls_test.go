package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mihf.dev/cmd/internal/wiring"
	"mihf.dev/integration/daemons"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/daemon"
)

// TestTCP speaks to a daemon over mutual TLS, by gRPC and NATS. It keeps no history.
func TestTCP(t *testing.T) {
	dir := t.TempDir()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // the daemon opens it itself
	c := config.Defaults()
	c.DBus.Bus = config.NoBus
	c.Node.Name, c.Sensors = "far", config.Sensors{}
	c.GRPC.Socket, c.GRPC.Listen = filepath.Join(dir, "s"), address
	pems := filepath.Join(dir, "pem")
	c.GRPC.Cert, c.GRPC.Key = daemons.Identity(t, pems, "daemon", "127.0.0.1")
	c.GRPC.ClientCA, _ = daemons.Identity(t, pems, "ours", "127.0.0.1")
	daemons.Identity(t, pems, "stranger", "127.0.0.1")
	n := &c.NATS
	n.Server, n.Listen, n.Users = config.NATSEmbedded, "127.0.0.1:0", filepath.Join(dir, "users")
	n.Cert, n.Key, n.CA = c.GRPC.Cert, c.GRPC.Key, c.GRPC.ClientCA
	if err := os.WriteFile(n.Users, []byte("reader:"+readerSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := wiring.Assemble(&c, wiring.Options{State: dir, Version: "1.2.3"})
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
	<-a.NATS.Ready()
	t.Run("scripts", func(t *testing.T) {
		testscript.Run(t, testscript.Params{Dir: "testdata/tls", Setup: func(e *testscript.Env) error {
			e.Setenv("TCP", address)
			e.Setenv("NATS", "tls://"+a.NATS.Addr().String())
			if err := os.WriteFile(filepath.Join(e.WorkDir, "reader.pass"), []byte(readerSecret), 0o600); err != nil {
				return err
			}
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			return os.CopyFS(e.WorkDir, os.DirFS(pems))
		}})
	})
}
