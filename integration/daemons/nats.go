package daemons

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"mihf.dev/integration/netns"
)

// A NATSConfig says how an external nats-server runs.
type NATSConfig struct {
	// Config is the text of its configuration file: users, permissions, TLS, JetStream and
	// so on, but for what is set here.
	Config string
	// Host is the address to listen on, 127.0.0.1 if empty.
	Host string
	// Port for clients; 0: any, the same after a restart.
	Port int
	// Leafnodes makes the server take leaf nodes too, on Host and any port, with
	// this text in that block of its configuration.
	Leafnodes *string
	// NS is the network namespace that it runs in; nil: the test's own.
	NS *netns.NS
}

// A NATSServer is a nats-server process.
type NATSServer struct {
	Daemon
	// URL is where clients connect, LeafURL where leaf nodes do (empty without Leafnodes);
	// both stay the same over restarts.
	URL, LeafURL string
}

var (
	clientPort = regexp.MustCompile(`Listening for client connections on \S+:(\d+)\n`)
	leafPort   = regexp.MustCompile(`Listening for leafnode connections on \S+:(\d+)\n`)
	natsReady  = regexp.MustCompile(`Server is ready\n`)
)

// NATS starts a nats-server that ends with the test.
func NATS(t testing.TB, c NATSConfig) *NATSServer {
	t.Helper()
	host := c.Host
	if host == "" {
		host = "127.0.0.1"
	}
	file := filepath.Join(t.TempDir(), "nats.conf")
	port, leaf := "-1", "-1"
	if c.Port != 0 {
		port = fmt.Sprint(c.Port)
	}
	s := &NATSServer{}
	var enter func() error
	if c.NS != nil {
		enter = c.NS.Enter
	}
	s.Daemon = Daemon{t: t, enter: enter, command: func() *exec.Cmd {
		t.Helper()
		text := fmt.Sprintf("listen: %q\n%s\n", net.JoinHostPort(host, port), c.Config)
		if c.Leafnodes != nil {
			text += fmt.Sprintf("leafnodes {\n  listen: %q\n%s\n}\n", net.JoinHostPort(host, leaf), *c.Leafnodes)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal("daemons:", err)
		}
		return Command(t, "nats-server", "-c", file)
	}, ready: func(p *process) {
		t.Helper()
		p.await(t, natsReady)
		port = p.await(t, clientPort)[1]
		s.URL = "nats://" + net.JoinHostPort(host, port)
		if c.Leafnodes != nil {
			leaf = p.await(t, leafPort)[1]
			s.LeafURL = "nats-leaf://" + net.JoinHostPort(host, leaf)
		}
	}}
	s.start()
	return s
}
