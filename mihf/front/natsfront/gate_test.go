package natsfront

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"golang.org/x/crypto/bcrypt"

	"mihf.dev/mihf"
	"mihf.dev/proto/natsproto"
)

// A user has a share of the connections, which is free again when one ends.
func TestShareOfConnections(t *testing.T) {
	o := listening()
	o.Embedded.MaxConnections = 2
	w := newBed(t, o)
	url := "nats://" + w.front.Addr().String()
	first, _ := w.dial("alice"), w.dial("alice")
	for range 2 {
		if c, err := nats.Connect(url, nats.UserInfo("alice", secret)); !errors.Is(err, nats.ErrAuthorization) {
			c.Close()
			t.Fatalf("one more: %v", err)
		}
	}
	w.dial("bob") // has a share of its own
	if n := w.front.Counts().RefusedConnections; n != 2 {
		t.Errorf("%d were refused, want 2", n)
	}
	first.Close()
	w.until("there is room again", func() bool {
		c, err := nats.Connect(url, nats.UserInfo("alice", secret))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// Who connects and does not say who it is keeps nobody out: of many the oldest are cut off,
// and those who said it are not.
func TestStrangersAreCutOff(t *testing.T) {
	w := newBed(t, listening())
	alice := w.dial("alice")
	var d net.Dialer
	for range 2 * maxStrangers {
		c, err := d.DialContext(w.ctx, "tcp", w.front.Addr().String())
		w.must(err)
		defer func() { _ = c.Close() }()
	}
	w.until("some are cut off", func() bool { return w.front.Counts().RefusedConnections > 0 })
	w.good(w.ask(alice, natsproto.OpSnapshot, nil, nil))
	if n := w.front.Counts().Connects; n != 1 || !w.front.Counts().Connected {
		t.Errorf("the daemon itself connected %d times", n)
	}
}

// resumed makes an event.
func resumed(w *bed) { w.see(mihf.Observation{Kind: mihf.ObsResume, Gap: 1}) }

// Who may do another thing than before loses its connection, and comes back with that.
func TestRegrant(t *testing.T) {
	var blind atomic.Bool
	o := listening()
	w := newBedGranting(t, o, func(who mihf.Caller) Grant {
		g := grant(who)
		if who.Name == "alice" && blind.Load() {
			g.Events = false
		}
		return g
	})
	back, denied := make(chan struct{}, 8), make(chan error, 8)
	alice := w.dial("alice", nats.ReconnectHandler(func(*nats.Conn) { back <- struct{}{} }), nats.ReconnectWait(1),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	events, err := alice.SubscribeSync(natsproto.Events(node))
	w.must(err)
	bob := w.dial("bob", nats.NoReconnect())
	w.must(alice.Flush())
	resumed(w)
	w.next(events)
	w.front.Regrant() // nothing changed
	blind.Store(true)
	w.front.Regrant()
	<-back
	if err := <-denied; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("her subscription: %v", err)
	}
	w.must(bob.Flush()) // has kept its connection
	blind.Store(false)
	w.front.Regrant()
	<-back
	events, err = alice.SubscribeSync(natsproto.Events(node))
	w.must(err)
	w.must(alice.Flush())
	resumed(w)
	w.next(events)
	if len(back) > 0 {
		t.Error("a connection was ended for nothing")
	}
}

// A user's password may be given by its bcrypt hash, and one that begins as such a hash does
// is a password.
func TestPasswords(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte(secret), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		secret, given string
		want          bool
	}{
		{secret, secret, true},
		{secret, "Secret", false},
		{secret, "", false},
		{string(hash), secret, true},
		{string(hash), string(hash), false},
		{string(hash), "Secret", false},
		{"$2a$plain", "$2a$plain", true},
		{"$2a$plain", secret, false},
	} {
		if got := proves(c.given, c.secret); got != c.want {
			t.Errorf("%q proves %q: %v", c.given, c.secret, got)
		}
	}
}
