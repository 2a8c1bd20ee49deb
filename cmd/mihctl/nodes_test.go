package main

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rogpeppe/go-internal/testscript"

	"mihf.dev/proto/natsproto"
)

// TestNodes asks a NATS server on which two nodes are, as in a fleet.
func TestNodes(t *testing.T) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	c, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for _, node := range []string{"bus-17", "bus-18"} {
		if _, err := c.Subscribe(natsproto.Nodes, func(m *nats.Msg) { _ = m.Respond([]byte(node)) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Run("scripts", func(t *testing.T) {
		testscript.Run(t, testscript.Params{Dir: "testdata/nodes", Setup: func(e *testscript.Env) error {
			e.Setenv("MIHF_VIA", "nats")
			e.Setenv("MIHF_NATS_ADDRESS", s.ClientURL())
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		}})
	})
}
