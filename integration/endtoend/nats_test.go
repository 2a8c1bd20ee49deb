package endtoend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"mihf.dev/clients/mihnats"
	"mihf.dev/integration/daemons"
	"mihf.dev/integration/netns"
	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

const (
	natsPort = "4222"
	leafPort = "7422"
	// natsUsers are of every server outside the node.
	natsUsers = "authorization { users: [ {user: mihfd, password: one}, {user: remote, password: two} ] }\n"
	// natsAccess is what those may do who come by NATS from outside.
	natsAccess = "[[access.grants]]\nnats_users = [\"external\"]\nroles = [\"register-any\"]\nas_uid = 4711\n"
)

// newNATSBed makes a bed whose daemon reaches the hosts of a hub, with lines for its section
// nats. The file of its credential is there.
func newNATSBed(t *testing.T, config string) *bed {
	t.Helper()
	credentials := t.TempDir() + "/credentials"
	if err := os.WriteFile(credentials, []byte("mihfd:one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBedWith(t, bedConfig{rest: fmt.Sprintf("[nats]\ncredentials = %q\n%s%s", credentials, config, natsAccess)})
	b.hub()
	b.online()
	return b
}

// natsClient returns a client of the bed's daemon that connects from a host to a server.
func (b *bed) natsClient(from *netns.NS, server int) *mihnats.Client {
	b.t.Helper()
	s, err := b.client.Status(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	c, err := mihnats.Dial("nats://"+addressOf(server)+":"+natsPort, mihnats.Options{
		Node: s.Node, User: "remote", Password: "two", NATS: []nats.Option{nats.SetCustomDialer(natsDialer{from})},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	await(b.t, "the daemon by way of NATS", func() error {
		_, err := c.Snapshot(b.t.Context())
		return err
	})
	return c
}

// natsDialer connects from a namespace.
type natsDialer struct{ ns *netns.NS }

// Dial implements nats.CustomDialer.
func (d natsDialer) Dial(_, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return dialIn(ctx, d.ns, addr)
}

// TestNATSServerKilled: the server outside ends and another one starts in its place (report
// N06). What was published meanwhile is not published late.
func TestNATSServerKilled(t *testing.T) {
	b := newNATSBed(t, "server = \"external\"\nservers = [\"nats://192.0.2.11:4222\"]\n")
	server := daemons.NATS(t, daemons.NATSConfig{NS: b.host(11), Host: addressOf(11), Port: 4222, Config: natsUsers})
	far := b.host(12)
	heard := b.listenRaw(far)
	var old uint64 // what is published with this number or a lower one is
	b.survives(b.natsClient(far, 11), outage{away: server.Kill, back: func() {
		heard() // was in time
		b.snapshot("the newest number", func(s *mihf.Snapshot) bool { old = s.Sequence; return true })
		server.Restart()
	}, over: func() {
		for sequence, subject := range heard() {
			if sequence <= old {
				t.Errorf("published after the outage: %s, number %d; %d was reached before", subject, sequence, old)
			}
		}
	}})
}

// listenRaw subscribes to all that the daemon publishes, from a host. What it returns gives
// the subjects of the events and hints that were heard since it was called last, by their
// numbers.
func (b *bed) listenRaw(from *netns.NS) func() map[uint64]string {
	b.t.Helper()
	c, err := nats.Connect("nats://"+addressOf(11)+":"+natsPort, nats.UserInfo("remote", "two"), nats.SetCustomDialer(natsDialer{from}),
		nats.MaxReconnects(-1), nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	var mu sync.Mutex // guards heard
	heard := map[uint64]string{}
	note := func(m *nats.Msg, p interface {
		proto.Message
		GetSequence() uint64
	},
	) {
		mu.Lock()
		defer mu.Unlock()
		if err := proto.Unmarshal(m.Data, p); err != nil {
			heard[0] = m.Subject + ": " + err.Error()
			return
		}
		heard[p.GetSequence()] = m.Subject
	}
	_, err1 := c.Subscribe("mih.v1.*.event.>", func(m *nats.Msg) { note(m, &mihv1.Event{}) })
	_, err2 := c.Subscribe("mih.v1.*.hint.>", func(m *nats.Msg) { note(m, &mihv1.Hint{}) })
	if err := errors.Join(err1, err2); err != nil {
		b.t.Fatal(err)
	}
	return func() map[uint64]string {
		mu.Lock()
		defer mu.Unlock()
		all := heard
		heard = map[uint64]string{}
		return all
	}
}

// TestNATSHalfOpen: nothing comes through any more between the server and both its clients,
// and nobody tells them: the daemon, and a client that only listens (report N07). Both find
// out and come back.
func TestNATSHalfOpen(t *testing.T) {
	t.Parallel() // it mostly waits
	b := newNATSBed(t, "server = \"external\"\nservers = [\"nats://192.0.2.11:4222\"]\n")
	daemons.NATS(t, daemons.NATSConfig{NS: b.host(11), Host: addressOf(11), Port: 4222, Config: natsUsers})
	far := b.host(12)
	b.survives(b.natsClient(far, 11), outage{
		away: func() {
			b.peer.Down(portOf(11))
			b.severed(b.node, natsPort)
			b.severed(far, natsPort)
		},
		back: func() { b.peer.Up(portOf(11)) },
	})
}

// TestNATSCluster: the daemon's own server is a leaf node of three servers. The leaf link is
// cut and healed; then the server that it leads to ends, and another one takes its place.
func TestNATSCluster(t *testing.T) {
	t.Parallel() // it mostly waits
	b := newNATSBed(t, "server = \"embedded\"\nleaf = [\"nats-leaf://192.0.2.11:7422\", \"nats-leaf://192.0.2.12:7422\"]\n")
	var servers []*daemons.NATSServer
	var hosts []*netns.NS
	for n := 11; n <= 13; n++ {
		ns := b.host(n)
		hosts = append(hosts, ns)
		servers = append(servers, daemons.NATS(t, daemons.NATSConfig{NS: ns, Host: addressOf(n), Port: 4222, Config: natsUsers + fmt.Sprintf(`
			server_name: n%d, ping_interval: "2s"
			cluster { name: hub, listen: "192.0.2.%d:6222", routes: ["nats-route://192.0.2.11:6222", "nats-route://192.0.2.12:6222", "nats-route://192.0.2.13:6222"] }
			leafnodes { listen: "192.0.2.%d:7422" }
		`, n, n, n)}))
	}
	c := b.natsClient(hosts[2], 13)
	b.survives(c, outage{
		away: func() {
			b.peer.Enslave("p0", "") // its carrier stays
			b.severed(b.node, leafPort)
		},
		back: func() { b.peer.Enslave("p0", "br0") },
	})
	w := watch(t, c)
	for i, n := range []int{11, 12} { // the leaf link leads to one of them
		servers[i].Kill()
		await(t, fmt.Sprintf("the daemon without server %d", n), func() error {
			_, err := c.Snapshot(t.Context())
			return err
		})
		b.peer.Down("q0")
		w.event(mihf.LinkDown, nil)
		b.peer.Up("q0")
		w.event(mihf.LinkUp, nil)
		servers[i].Restart()
	}
}

// severed waits until no TCP connection from a namespace to a port of the hosts is thought
// to be open.
func (b *bed) severed(ns *netns.NS, port string) {
	b.t.Helper()
	begin := time.Now()
	for {
		open := 0
		for _, c := range tcp(b.t, ns) {
			if c.established && strings.HasSuffix(c.remote, ":"+port) {
				open++
			}
		}
		took := time.Since(begin)
		if open == 0 {
			b.t.Logf("severed after %v", took)
			return
		}
		if took > goneWithin {
			b.t.Fatalf("%d connections to port %s are thought to be open %v after the cut", open, port, took)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
