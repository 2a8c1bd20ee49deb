package broker_test

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/broker"
)

// quick is a flow that is frozen at once when the predictor says low.
var quick = mihf.FlowSpec{Link: wlan, RTT: 100 * time.Millisecond, Hints: mihf.Hints(mihf.HintFreeze, mihf.HintUnfreeze)}

func TestHintsOfOwnFlowsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		mine, other := b.attach(alice), b.attach(bob)
		watcher, stranger := read(t, b.subscribe(alice, mihf.SubscribeRequest{Hints: true}), 4), read(t, b.subscribe(bob, mihf.SubscribeRequest{Hints: true}), 4)
		silent := read(t, b.subscribe(alice, mihf.SubscribeRequest{}), 4)
		reg := b.register(mine, quick)
		if reg.Boot != b.Boot() || reg.Flow == "" || reg.Frozen {
			t.Errorf("registration %+v", reg)
		}
		got, none := read(t, mine, 1), read(t, other, 1)
		b.give(wlan, facts(true))
		b.give(wlan, rssi(-85))
		b.give(wlan, facts(false))
		time.Sleep(time.Second)
		b.give(wlan, facts(true))
		ds := got.all()
		if chained(t, 0, ds); ds[0].Hint.Flow != reg.Flow || ds[0].Hint.Epoch != 1 {
			t.Errorf("first hint %+v", ds[0].Hint)
		}
		got.got = ds
		got.want("freeze predicted", "unfreeze path_usable")
		none.want()
		for r, want := range map[*reader]int{watcher: 2, stranger: 0, silent: 0} {
			n := 0
			for _, d := range r.all() {
				if d.Kind == mihf.DeliverHint {
					n++
				}
			}
			if n != want {
				t.Errorf("a subscriber saw %d hints, want %d", n, want)
			}
		}
	})
}

func TestSnapshotShowsOwnFlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(c *broker.Config) {
			c.Access = access.New(0, access.Default, access.Grant{UIDs: []uint32{7}, Roles: access.Of(access.RegisterAny)})
		})
		b.register(b.attach(alice), quick)
		for who, want := range map[uint32]int{1000: 1, 1001: 0, 7: 1, 0: 1} {
			s, err := b.Snapshot(t.Context(), user(who))
			if err != nil || len(s.Flows) != want {
				t.Errorf("uid %d sees %d flows (%v), want %d", who, len(s.Flows), err, want)
			}
		}
	})
}

// "who may register which flows (own uid only unless granted)"
func TestRegistrationIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		who  mihf.Caller
		spec mihf.FlowSpec
		want error
	}{
		"other's":     {alice, mihf.FlowSpec{Link: wlan, Owner: mihf.Some(uint32(1001))}, mihf.ErrPermission},
		"nobody":      {mihf.Caller{Front: "grpc"}, mihf.FlowSpec{Link: wlan}, mihf.ErrPermission},
		"root":        {root, mihf.FlowSpec{Link: wlan, Owner: mihf.Some(uint32(1001))}, nil},
		"granted":     {user(7), mihf.FlowSpec{Link: wlan, Owner: mihf.Some(uint32(1001))}, nil},
		"no ulid":     {alice, mihf.FlowSpec{Link: wlan, ID: "x"}, mihf.ErrInvalid},
		"no place":    {alice, mihf.FlowSpec{}, mihf.ErrInvalid},
		"many tuples": {alice, mihf.FlowSpec{Link: wlan, Tuples: make([]mihf.Endpoints, mihf.MaxTuples+1)}, mihf.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, func(c *broker.Config) {
					c.Access = access.New(0, access.Default, access.Grant{UIDs: []uint32{7}, Roles: access.Of(access.RegisterAny)})
				})
				if _, err := b.attach(c.who).Register(c.spec); !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				refused := uint64(1)
				if c.want == nil {
					refused = 0
				}
				if n := b.counter("refused_requests"); n != refused {
					t.Errorf("%d refused, want %d", n, refused)
				}
			})
		})
	}
}

func TestOnlyOwnAttachmentMayChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		mine, other := b.attach(alice), b.attach(alice)
		id := b.register(mine, quick).Flow
		u := mihf.FlowUpdate{Flow: id, RTT: mihf.Some(time.Second)}
		for _, err := range []error{other.Update(u), other.Acknowledge(mihf.Ack{Flow: id}), other.Unregister(id), mine.Unregister("x")} {
			if !errors.Is(err, mihf.ErrNotFound) {
				t.Errorf("got %v, want ErrNotFound", err)
			}
		}
		if err := mine.Update(u); err != nil {
			t.Error(err)
		}
		if s, _ := b.Snapshot(t.Context(), alice); s.Flows[0].Spec.RTT != time.Second {
			t.Errorf("RTT %v after the update", s.Flows[0].Spec.RTT)
		}
		if err := mine.Unregister(id); err != nil {
			t.Error(err)
		}
		if err := mine.Update(u); !errors.Is(err, mihf.ErrNotFound) {
			t.Errorf("update after unregistering: %v, want ErrNotFound", err)
		}
	})
}

// "Closing it ends the registration of its flows."
func TestCloseEndsRegistrations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		a := b.attach(alice)
		b.register(a, quick)
		id := b.register(a, quick).Flow
		a.Close()
		if s, _ := b.Status(t.Context(), root); s.Flows != 0 || s.Subscribers != 0 {
			t.Errorf("%d flows, %d subscribers, want none", s.Flows, s.Subscribers)
		}
		if _, err := a.Register(quick); !errors.Is(err, mihf.ErrClosed) {
			t.Errorf("register after close: %v, want ErrClosed", err)
		}
		again := quick
		again.ID = id
		if reg := b.register(b.attach(alice), again); reg.Flow != id {
			t.Errorf("the flow came back as %s", reg.Flow)
		}
	})
}

// The owner may come back before its old connection is found dead.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		old, fresh := b.attach(alice), b.attach(alice)
		spec := quick
		spec.ID = b.register(old, quick).Flow
		b.give(wlan, facts(true))
		b.give(wlan, rssi(-85))
		if _, err := b.attach(bob).Register(spec); !errors.Is(err, mihf.ErrExists) {
			t.Errorf("another owner: %v, want ErrExists", err)
		}
		bad := spec
		bad.RTT = -1
		if _, err := fresh.Register(bad); !errors.Is(err, mihf.ErrInvalid) {
			t.Errorf("a bad takeover: %v, want ErrInvalid", err)
		}
		if err := old.Update(mihf.FlowUpdate{Flow: spec.ID}); err != nil {
			t.Errorf("a refused takeover changed something: %v", err)
		}
		if reg := b.register(fresh, spec); !reg.Frozen {
			t.Error("the registration does not tell of the freeze in force")
		}
		if err := old.Update(mihf.FlowUpdate{Flow: spec.ID}); !errors.Is(err, mihf.ErrNotFound) {
			t.Errorf("the old connection: %v, want ErrNotFound", err)
		}
		r := read(t, fresh, 4)
		r.all()
		old.Close()
		b.give(wlan, facts(false))
		b.give(wlan, facts(true))
		b.give(wlan, rssi(-60))
		time.Sleep(time.Minute)
		b.give(wlan, rssi(-85))
		for _, d := range r.all() {
			if show(&d) == "freeze predicted" {
				return
			}
		}
		t.Error("the flow gets no hints after the takeover")
	})
}

func TestFlowsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(c *broker.Config) { c.MaxFlows = 2 })
		a := b.attach(alice)
		b.register(a, quick)
		spec := quick
		spec.ID = b.register(a, quick).Flow
		if _, err := a.Register(quick); !errors.Is(err, mihf.ErrLimit) {
			t.Errorf("got %v, want ErrLimit", err)
		}
		b.register(a, spec) // the same again needs no room
		again := b.attach(alice)
		if _, err := again.Register(quick); !errors.Is(err, mihf.ErrLimit) {
			t.Errorf("on another attachment of the same user: got %v, want ErrLimit", err)
		}
		b.register(b.attach(bob), quick) // another user has room of his own
		a.Close()
		synctest.Wait()
		b.register(again, quick)
	})
}

// "An attachment has a mailbox of its own": a burst that overruns the log ends no
// attachment that reads, and one that does not read ends alone.
func TestMailbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(c *broker.Config) { c.Replay, c.Mailbox = 4, 8 })
		a, stuck := b.attach(alice), b.attach(bob)
		for range 100 {
			b.register(a, quick)
		}
		b.register(stuck, quick)
		r := read(t, a, 3)
		b.give(wlan, facts(true))
		for range 17 { // one more than 8 and 8 for its flow
			b.give(wlan, rssi(-85))
			b.give(wlan, facts(false))
			b.give(wlan, facts(true))
			b.give(wlan, rssi(-60))
			time.Sleep(20 * time.Minute)
		}
		<-stuck.Done()
		if _, err := stuck.Next(make([]mihf.Delivery, 1)); !errors.Is(err, mihf.ErrSlow) {
			t.Errorf("the one that stopped reading: %v, want ErrSlow", err)
		}
		got := r.all()
		chained(t, 0, got)
		if n := len(got); n < 17*100 {
			t.Errorf("%d hints, want one freeze in each round for each flow", n)
		}
		if a.Err() != nil {
			t.Errorf("the good one ended: %v", a.Err())
		}
		if n := b.counter("slow_subscribers"); n != 1 {
			t.Errorf("%d counted as slow, want 1", n)
		}
	})
}

// "The dispatch margin is the measured p99 of acknowledgements."
func TestAcknowledgementsTeachTheMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		a := b.attach(alice)
		reg := b.register(a, quick)
		b.give(wlan, facts(true))
		buf := make([]mihf.Delivery, 1)
		for range 20 {
			b.give(wlan, rssi(-85))
			if _, err := a.Next(buf); err != nil {
				t.Fatal(err)
			}
			time.Sleep(90 * time.Millisecond)
			if err := a.Acknowledge(mihf.Ack{Flow: reg.Flow, Epoch: buf[0].Hint.Epoch, Held: 50 * time.Millisecond}); err != nil {
				t.Fatal(err)
			}
			b.give(wlan, facts(false))
			b.give(wlan, facts(true))
			b.give(wlan, rssi(-60))
			if _, err := a.Next(buf); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Minute)
		}
		s, _ := b.Snapshot(t.Context(), alice)
		if f := s.Flows[0]; f.Lead != 140*time.Millisecond || f.Acknowledged == 0 {
			t.Errorf("lead %v, want RTT 100 ms and 90 ms less 50 ms; acknowledged %d", f.Lead, f.Acknowledged)
		}
	})
}

// The loop tells which peers' routes matter.
func TestPeersAreWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told [][]netip.Addr
		b := start(t, func(c *broker.Config) { c.WatchPeers = func(p []netip.Addr) { told = append(told, p) } })
		a := b.attach(alice)
		peer := netip.MustParseAddrPort("198.51.100.1:443")
		id := b.register(a, mihf.FlowSpec{Tuples: []mihf.Endpoints{{Remote: peer}}}).Flow
		if err := a.Unregister(id); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(told) != 2 || len(told[0]) != 1 || told[0][0] != peer.Addr() || len(told[1]) != 0 {
			t.Errorf("told %v, want the peer, then none", told)
		}
	})
}
