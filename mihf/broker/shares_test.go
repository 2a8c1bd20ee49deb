package broker_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/broker"
)

// limited checks a refusal for want of room: it says which key would make more.
func limited(t *testing.T, err error, key string) {
	t.Helper()
	if !errors.Is(err, mihf.ErrLimit) || !strings.HasSuffix(err.Error(), "; see [broker] "+key) {
		t.Errorf("%v, want ErrLimit that names %s", err, key)
	}
}

// "each caller alone": who has its share leaves the rest to others, and gets it back with
// the end of what it has.
func TestShareOfSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(c *broker.Config) { c.MaxSubscribersPerUser, c.MaxSubscribers = 2, 5 })
		f, a := b.subscribe(alice, mihf.SubscribeRequest{}), b.attach(alice)
		_, err := b.Subscribe(t.Context(), alice, mihf.SubscribeRequest{})
		limited(t, err, "max_subscribers_per_user")
		_, err = b.Attach(t.Context(), alice)
		limited(t, err, "max_subscribers_per_user")
		b.subscribe(bob, mihf.SubscribeRequest{})
		f.Close()
		f.Close() // gives back once
		a.Close()
		b.subscribe(alice, mihf.SubscribeRequest{})
		b.attach(alice)
		_, err = b.Attach(t.Context(), alice)
		limited(t, err, "max_subscribers_per_user")
		r := b.record(func(*mihf.Observation) error { return nil })
		b.record(func(*mihf.Observation) error { return nil })
		_, err = b.Record(t.Context(), root, nil)
		limited(t, err, "max_subscribers_per_user")
		_, err = b.Subscribe(t.Context(), user(3), mihf.SubscribeRequest{})
		limited(t, err, "max_subscribers")
		r.cancel()
		<-r.ended
		b.subscribe(user(3), mihf.SubscribeRequest{})
	})
}

// A certificate is a user of its own, whatever process shows it.
func TestShareOfACertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(c *broker.Config) { c.MaxSubscribersPerUser = 1 })
		named := func(name string, pid int) mihf.Caller { return mihf.Caller{Front: "grpc", Name: name, PID: pid} }
		b.subscribe(named("a", 1), mihf.SubscribeRequest{})
		_, err := b.Subscribe(t.Context(), named("a", 2), mihf.SubscribeRequest{})
		limited(t, err, "max_subscribers_per_user")
		b.subscribe(named("b", 1), mihf.SubscribeRequest{})
	})
}

// fill subscribes until it is refused, and returns what it got.
func (b *bed) fill(who mihf.Caller) (feeds []mihf.Feed) {
	b.Helper()
	for {
		f, err := b.Subscribe(b.Context(), who, mihf.SubscribeRequest{})
		if err != nil {
			if !errors.Is(err, mihf.ErrLimit) || !strings.HasSuffix(err.Error(), "; see [broker] max_unread_bytes_per_user") {
				b.Errorf("after %d: %v", len(feeds), err)
			}
			return feeds
		}
		b.Cleanup(f.Close)
		feeds = append(feeds, f)
	}
}

// Snapshots that nobody reads are bounded in bytes, for each caller and for all; what was
// read, or is over, counts no more.
func TestShareOfUnreadSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 64 << 10
		b := start(t, func(c *broker.Config) {
			c.MaxUnreadBytesPerUser, c.Access = each, access.New(0, access.Of(access.See, access.RegisterAny))
		})
		at := b.attach(alice)
		for range 40 {
			b.register(at, quick)
		}
		hers := b.fill(alice)
		if n := len(hers); n < 3 || n > 8 {
			t.Fatalf("%d snapshots of 40 flows are unread in %d bytes", n, each)
		}
		if s, err := b.Status(t.Context(), root); err != nil || s.Subscribers != 1+len(hers) {
			t.Errorf("%d subscribers, want %d: who was refused is none (%v)", s.Subscribers, 1+len(hers), err)
		}
		hers[0].Close()
		read(t, hers[1], 1).all()
		if n := len(b.fill(alice)); n != 2 {
			t.Errorf("room for %d snapshots after one was read and one closed, want 2", n)
		}
		others := 0
		for uid := range uint32(20) {
			others += len(b.fill(user(1 + uid)))
		}
		if n := len(hers); others < 3*n || others > 4*n {
			t.Errorf("20 other users have %d unread snapshots, where one has %d", others, n)
		}
	})
}
