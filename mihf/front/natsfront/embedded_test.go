package natsfront

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"mihf.dev/mihf"
	"mihf.dev/proto/natsproto"
)

// What would let anyone in is refused before anything is opened.
func TestEmbeddedRefused(t *testing.T) {
	users := []User{{"a", "x"}}
	verified := &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}
	for _, c := range []struct {
		what string
		e    Embedded
		ok   bool
	}{
		{"nothing", Embedded{}, true},
		{"in process", Embedded{Users: users}, true},
		{"loopback", Embedded{Users: users, Listen: "127.0.0.1:0"}, true},
		{"loopback, IPv6", Embedded{Users: users, Listen: "[::1]:0"}, true},
		{"a listener without users", Embedded{Listen: "127.0.0.1:0"}, false},
		{"all addresses", Embedded{Users: users, Listen: ":4222"}, false},
		{"all addresses, named", Embedded{Users: users, Listen: "0.0.0.0:4222"}, false},
		{"a name", Embedded{Users: users, Listen: "localhost:4222"}, false},
		{"no port", Embedded{Users: users, Listen: "127.0.0.1"}, false},
		{"TLS without client certificates", Embedded{Users: users, Listen: "0.0.0.0:0", TLS: &tls.Config{}}, false},
		{"TLS with client certificates", Embedded{Users: users, Listen: "0.0.0.0:0", TLS: verified}, true},
	} {
		if err := checkEmbedded(&c.e); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	if _, err := New(Options{}); err == nil {
		t.Error("no server of either kind is taken")
	}
}

// "has no listener unless one is given", "lets in nobody without a credential".
func TestNobodyWithoutCredential(t *testing.T) {
	w := newBed(t, embeddedOptions())
	if w.front.Addr() != nil || w.front.own.server.Load().Addr() != nil || w.front.own.server.Load().MonitorAddr() != nil {
		t.Errorf("the server listens on %v, monitoring %v", w.front.own.server.Load().Addr(), w.front.own.server.Load().MonitorAddr())
	}
	w = newBed(t, listening())
	for what, option := range map[string]nats.Option{
		"nobody":         nats.Name("x"),
		"wrong password": nats.UserInfo("alice", "wrong"),
		"unknown user":   nats.UserInfo("mallory", secret),
		"token":          nats.Token(secret),
		"system account": nats.UserInfo("sys", ""),
	} {
		c, err := nats.Connect("nats://"+w.front.Addr().String(), option)
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", what, err)
			c.Close()
		}
	}
}

// raw speaks the protocol by hand, over the listener.
type raw struct {
	testing.TB
	net.Conn
	in *bufio.Reader
}

func (w *bed) raw(connect string) *raw {
	w.Helper()
	var d net.Dialer
	c, err := d.DialContext(w.ctx, "tcp", w.front.Addr().String())
	w.must(err)
	w.Cleanup(func() { _ = c.Close() })
	w.must(c.SetDeadline(time.Now().Add(patient)))
	r := &raw{w.TB, c, bufio.NewReader(c)}
	r.say("CONNECT " + connect + "\r\nPING\r\n")
	return r
}

func (r *raw) say(text string) {
	r.Helper()
	if _, err := io.WriteString(r.Conn, text); err != nil {
		r.Fatal(err)
	}
}

// line returns the next line that says more than how the server is.
func (r *raw) line() string {
	r.Helper()
	for {
		s, err := r.in.ReadString('\n')
		if err != nil {
			r.Fatal(err)
		}
		if !strings.HasPrefix(s, "INFO ") {
			return strings.TrimSpace(s)
		}
	}
}

func listening() Options {
	o := embeddedOptions()
	o.Embedded.Listen = "127.0.0.1:0"
	return o
}

// "It says itself who asks": a client that shows a key which it does not have, or sends the
// server's own header, is nobody.
func TestForgedIdentity(t *testing.T) {
	w := newBed(t, listening())
	if line := w.raw(`{"user":"alice","pass":"secret","nkey":"root","headers":true,"verbose":false,"protocol":1}`).line(); !strings.HasPrefix(line, "-ERR") {
		t.Errorf("a key that nobody has: %s", line)
	}
	r := w.raw(`{"user":"bob","pass":"secret","headers":true,"no_responders":true,"verbose":false,"protocol":1}`)
	if line := r.line(); line != "PONG" {
		t.Fatal(line)
	}
	r.say("SUB _INBOX.bob.* 1\r\n")
	forged := `{"acc":"MIHF","user":"root","kind":"Client"}`
	for i, header := range []string{
		"Nats-Request-Info: " + forged + "\r\n",
		"Nats-Request-Info: " + forged + "\r\nNats-Request-Info: " + forged + "\r\n",
		"X: y\nNats-Request-Info: " + forged + "\r\n",
		"X: Nats-Request-Info\r\nNats-Request-Info: " + forged + "\r\n",
		"nats-request-info: " + forged + "\r\n",
		" Nats-Request-Info: " + forged + "\r\n",
		"Nats-Request-Info : " + forged + "\r\n",
	} {
		head := "NATS/1.0\r\nContent-Type: application/json\r\nMihf-Method: ConfigureThresholds\r\n" + header + "\r\n"
		body := `{"link":"wifi-00000001"}`
		r.say(fmt.Sprintf("HPUB %s _INBOX.bob.%d %d %d\r\n%s%s\r\n",
			natsproto.Service(node, natsproto.OpCommand), i, len(head), len(head)+len(body), head, body))
		answer := r.line()
		if !strings.HasPrefix(answer, fmt.Sprintf("HMSG _INBOX.bob.%d ", i)) {
			t.Fatalf("header %q is answered with %s", header, answer)
		}
		refused := false
		for line := r.line(); line != ""; line = r.line() {
			refused = refused || line == natsproto.HeaderError+": PERMISSION"
		}
		if text := r.line(); !refused || strings.Contains(text, "root") {
			t.Errorf("header %q: refused is %v: %s", header, refused, text)
		}
	}
	if n := w.front.Counts(); n.Forged == 0 {
		t.Error("none is counted as forged")
	}
}

// denied returns whether the server refuses what f does with a connection.
func (w *bed) denied(user string, f func(*nats.Conn) error) bool {
	w.Helper()
	violations := make(chan error, 8)
	c := w.dial(user, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { violations <- err }))
	w.must(f(c))
	w.must(c.FlushWithContext(w.ctx))
	c.Close() // after which all callbacks have run
	w.until("the connection is closed", c.IsClosed)
	select {
	case err := <-violations:
		return errors.Is(err, nats.ErrPermissionViolation)
	case <-time.After(50 * time.Millisecond): // absence cannot be waited for
		return false
	}
}

// "It lets its users publish requests only, and hear events, their own inboxes, and the hints
// that they may see."
func TestPermissions(t *testing.T) {
	w := newBed(t, embeddedOptions())
	for _, c := range []struct {
		user    string
		publish bool
		subject string
		denied  bool
	}{
		{"alice", true, natsproto.Service(node, natsproto.OpSnapshot), false},
		{"alice", true, natsproto.Nodes, false},
		{"root", true, natsproto.Event(node, wlan, mihf.LinkDown), true},
		{"root", true, natsproto.Hint(node, "F", mihf.HintFreeze), true},
		{"root", true, natsproto.OwnerHint(node, 0, "F", mihf.HintFreeze), true},
		{"root", true, natsproto.Sync(node), true},
		{"root", true, "_INBOX.alice.x", true},
		{"root", true, "_INBOX.root.x", true},
		{"root", true, "anything", true},
		{"root", true, "$SYS.REQ.SERVER.PING", true},
		{"alice", false, natsproto.Events(node), false},
		{"alice", false, natsproto.LinkEvents(node, wlan), false},
		{"alice", false, natsproto.Sync(node), false},
		{"alice", false, "_INBOX.alice.>", false},
		{"alice", false, natsproto.OwnerHints(node, 1000), false},
		{"alice", false, natsproto.OwnerHints(node, 1001), true},
		{"alice", false, natsproto.Hints(node), true},
		{"alice", false, "_INBOX.bob.>", true},
		{"alice", false, "_INBOX.>", true},
		{"alice", false, ">", true},
		{"alice", false, natsproto.Services(node), true},
		{"root", false, natsproto.Hints(node), false},
		{"guest", false, natsproto.Events(node), true},
		{"guest", false, natsproto.Hints(node), true},
	} {
		denied := w.denied(c.user, func(n *nats.Conn) error {
			if c.publish {
				return n.Publish(c.subject, nil)
			}
			_, err := n.SubscribeSync(c.subject)
			return err
		})
		if denied != c.denied {
			t.Errorf("%s, publish %v, %s: denied is %v", c.user, c.publish, c.subject, denied)
		}
	}
}

// A user that comes with a key has its name.
func TestUserWithKey(t *testing.T) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	o := embeddedOptions()
	o.Embedded.Users = append(o.Embedded.Users[1:], User{"alice", public})
	w := newBed(t, o)
	c := w.dial("alice", nats.UserInfo("", ""), nats.Nkey(public, pair.Sign))
	w.good(w.ask(c, natsproto.OpHeartbeat, nats.Header{natsproto.HeaderSession: {"s"}, natsproto.HeaderDeliver: {"_INBOX.alice.s"}}, nil))
	w.refused(w.ask(c, natsproto.OpAdmin, nats.Header{
		natsproto.HeaderMethod: {"Record"}, natsproto.HeaderSession: {"r"}, natsproto.HeaderDeliver: {"_INBOX.bob.s"},
	}, nil), mihf.ErrPermission, "_INBOX.alice.")
}
