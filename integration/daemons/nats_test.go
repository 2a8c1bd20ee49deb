package daemons

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mihf.dev/integration/netns"
)

// connect connects once; states is told of what the connection does later.
func connect(t *testing.T, url string, states chan<- nats.Status) (*nats.Conn, error) {
	t.Helper()
	tell := func(s nats.Status) func(*nats.Conn) { return func(*nats.Conn) { states <- s } }
	c, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(time.Millisecond), nats.Timeout(patience),
		nats.DisconnectErrHandler(func(c *nats.Conn, _ error) { tell(nats.RECONNECTING)(c) }),
		nats.ReconnectHandler(tell(nats.CONNECTED)))
	if err == nil {
		closed := make(chan struct{})
		c.SetClosedHandler(func(*nats.Conn) { close(closed) })
		t.Cleanup(func() { c.Close(); <-closed })
	}
	return c, err
}

// echo sends one message through the server and back.
func echo(t *testing.T, c *nats.Conn) {
	t.Helper()
	sub, err := c.SubscribeSync("test")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := c.Publish("test", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if m, err := sub.NextMsg(patience); err != nil || string(m.Data) != "hello" {
		t.Errorf("came back as %v, %v", m, err)
	}
}

func TestNATSKilledAndRestarted(t *testing.T) {
	s := NATS(t, NATSConfig{})
	url := s.URL
	states := make(chan nats.Status, 10)
	c, err := connect(t, url, states)
	if err != nil {
		t.Fatal(err)
	}
	echo(t, c)
	s.Kill()
	if got := <-states; got != nats.RECONNECTING {
		t.Errorf("the client is %v after the server was killed", got)
	}
	s.Restart()
	if s.URL != url {
		t.Errorf("restarted on %s, was on %s", s.URL, url)
	}
	if got := <-states; got != nats.CONNECTED {
		t.Errorf("the client is %v after the restart", got)
	}
	echo(t, c)
}

func TestNATSUsersAndLeaf(t *testing.T) {
	leafnodes := ""
	s := NATS(t, NATSConfig{Config: `authorization { users: [ {user: a, password: b} ] }`, Leafnodes: &leafnodes})
	if _, err := connect(t, s.URL, nil); err == nil {
		t.Error("connected without a password")
	}
	hub, err := connect(t, strings.Replace(s.URL, "//", "//a:b@", 1), make(chan nats.Status, 10))
	if err != nil {
		t.Fatal(err)
	}
	edge := NATS(t, NATSConfig{Config: `leafnodes { remotes: [ {url: "` + strings.Replace(s.LeafURL, "//", "//a:b@", 1) + `"} ] }`})
	c, err := connect(t, edge.URL, make(chan nats.Status, 10))
	if err != nil {
		t.Fatal(err)
	}
	sub, err := hub.SubscribeSync("from.edge")
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Flush(); err != nil {
		t.Fatal(err)
	}
	// Nothing tells the client at the edge when the leaf link is up and knows the subscription.
	for deadline := time.Now().Add(patience); ; {
		if err := c.Publish("from.edge", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := sub.NextMsg(20 * time.Millisecond); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing comes through the leaf link; the edge printed\n%s", edge.Log())
		}
	}
}

func TestNATSInNamespace(t *testing.T) {
	node, peer := netns.New(t), netns.New(t)
	node.Pair("v0", peer, "p0")
	node.Up("v0")
	peer.Up("p0")
	node.AddAddr("v0", "10.0.0.1/24", 0, 0)
	peer.AddAddr("p0", "10.0.0.2/24", 0, 0)
	s := NATS(t, NATSConfig{NS: peer, Host: "10.0.0.2", Port: 4222})
	if s.URL != "nats://10.0.0.2:4222" {
		t.Errorf("listens on %s", s.URL)
	}
	err := node.Do(func() error {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", "10.0.0.2:4222")
		if err == nil {
			err = c.Close()
		}
		return err
	})
	if err != nil {
		t.Errorf("from the other namespace: %v", err)
	}
}

func TestNATSTool(t *testing.T) {
	s := NATS(t, NATSConfig{})
	c, err := connect(t, s.URL, make(chan nats.Status, 10))
	if err != nil {
		t.Fatal(err)
	}
	sub, err := c.SubscribeSync("test")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	cmd := Command(t, "nats", "--server="+s.URL, "pub", "test", "hello")
	cmd.Env = append(cmd.Environ(), "HOME="+t.TempDir()) // it keeps contexts there
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("nats pub: %v\n%s", err, out)
	}
	if m, err := sub.NextMsg(patience); err != nil || string(m.Data) != "hello" {
		t.Errorf("published %v, %v", m, err)
	}
}
