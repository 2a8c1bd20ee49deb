package dbusfront_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/mihf/busconn"
	"mihf.dev/mihf/front"
	"mihf.dev/mihf/front/dbusfront"
	"mihf.dev/proto/dbusapi"
)

func (w *bed) condition(s *dbusfront.Server, want mihf.Condition, text string) {
	w.Helper()
	w.until(fmt.Sprint("condition ", want, " ", text), func() bool {
		c := s.Condition()
		return c.Sensor == "dbus" && c.Condition == want && strings.Contains(c.Text, text)
	})
}

// "has name, objects and signals back within 3 s of the bus's return" (D04): the pauses are
// at most 2 s, and nothing of the old connection is left.
func TestBusRestart(t *testing.T) {
	w := newBed(t, nil)
	p := w.dial()
	w.see(wlan, facts(true))
	p.must("RegisterFlow", map[string]dbus.Variant{"link": dbus.MakeVariant(string(wlan))})
	for range 2 {
		w.bus.Kill()
		w.condition(w.server, mihf.ConditionUnavailable, "")
		w.until("the registration ended", func() bool {
			st, err := w.broker.Status(t.Context(), mihf.Caller{UID: mihf.Some(uint32(0))})
			return err == nil && st.Flows == 0
		})
		w.bus.Restart()
		back := time.Now()
		w.condition(w.server, mihf.ConditionOK, w.bus.Address)
		if d := time.Since(back); d > 3*time.Second {
			t.Errorf("back after %v", d)
		}
		p = w.dial(everything)
		p.must("GetSnapshot")
		if _, err := p.at(dbusapi.LinkPath(wlan), dbusapi.Properties+".GetAll", dbusapi.LinkInterface); err != nil {
			t.Error(err)
		}
		w.mark(1)
		p.next(dbusapi.BrokerInterface + ".ResumedFromSuspend")
	}
	if n := w.server.Counts().Joined; n != 3 {
		t.Errorf("joined %d times, want 3", n)
	}
}

// "The broker never waits for the bus", and a bus that is busy keeps what is registered
// (D10): it goes on where it was, or states what is missing.
func TestBusThatStandsStill(t *testing.T) {
	w := newBed(t, nil)
	p := w.dial(everything)
	w.see(wlan, facts(true))
	w.until("the link is there", func() bool { _, err := p.call("GetParameters", string(wlan)); return err == nil })
	p.must("RegisterFlow", map[string]dbus.Variant{"link": dbus.MakeVariant(string(wlan)), "late_freeze": dbus.MakeVariant(true)})
	w.bus.Stop()
	const many = 20000 // more than the sockets and the broker's ring hold
	for i := range many {
		w.mark(i + 1)
	}
	w.until("the broker took all", func() bool {
		st, err := w.broker.Status(t.Context(), mihf.Caller{UID: mihf.Some(uint32(0))})
		return err == nil && st.Flows == 1 && st.Sequence >= many
	})
	w.see(wlan, facts(false))
	w.bus.Cont()
	p.next(dbusapi.FlowInterface + ".Freeze") // the registration is as it was
	newest, gap := 0, false
	for newest <= many {
		s := <-p.heard
		switch s.Name {
		case dbusapi.BrokerInterface + ".ResumedFromSuspend":
			e := s.Body[2].(map[string]dbus.Variant)["resumed_from_suspend"].Value().(map[string]dbus.Variant)
			n := int(e["suspended_ns"].Value().(int64))
			if n != newest+1 && !gap && newest != 0 {
				t.Fatalf("mark %d after %d without a gap", n, newest)
			}
			newest = n
		case dbusapi.BrokerInterface + ".Gap":
			gap = true
			w.mark(many + 1) // what comes sooner may be in the gap
		}
	}
	if c := w.server.Condition(); c.Condition != mihf.ConditionOK || w.server.Counts().Joined != 1 {
		t.Errorf("%+v, %+v", c, w.server.Counts())
	}
}

// A name that another process owns is waited for; one that is taken away is asked for again.
func TestNameOfAnother(t *testing.T) {
	w := newBed(t, nil)
	second := w.serve(dbusfront.Options{Broker: w.broker, Address: func() (string, error) { return w.bus.Address, nil }})
	w.condition(second, mihf.ConditionUnavailable, "another mihfd")
	thief := w.dial()
	if _, err := thief.Bus(t.Context(), "RequestName", dbusapi.Name, uint32(dbus.NameFlagReplaceExisting)); err != nil {
		t.Fatal(err) // the front does not allow it: nothing happens
	}
	w.dial().must("GetSnapshot")
	w.bus.Kill()
	w.bus.Restart()
	w.until("one of both has the name", func() bool {
		a, b := w.server.Condition().Condition, second.Condition().Condition
		return (a == mihf.ConditionOK) != (b == mihf.ConditionOK)
	})
}

// Where there is no bus the front is ready, says so, and finds it when it comes.
func TestNoBus(t *testing.T) {
	var there atomic.Bool
	w := newBed(t, func(o *dbusfront.Options) {
		address := o.Address
		o.Address = func() (string, error) {
			if !there.Load() {
				return "", fmt.Errorf("%w: none was started", busconn.ErrNoBus)
			}
			return address()
		}
	})
	w.condition(w.server, mihf.ConditionUnavailable, "none was started")
	there.Store(true)
	w.condition(w.server, mihf.ConditionOK, "")
}

// "How many wait, of one user and of all, is bounded; one more is refused by name."
func TestLimits(t *testing.T) {
	release, waiting := make(chan struct{}), make(chan struct{}, 100)
	w := newBed(t, func(o *dbusfront.Options) {
		o.MaxSenders, o.MaxCalls, o.MaxStreams = 2, 3, 2
		b := o.Broker
		o.Broker = wraps{Broker: b, status: func(ctx context.Context, who mihf.Caller) (mihf.Status, error) {
			waiting <- struct{}{}
			<-release
			return b.Status(ctx, who)
		}}
	})
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	a, b, c := w.dial(), w.dial(), w.dial()
	for id := range uint64(2) {
		b.must("Subscribe", id, map[string]dbus.Variant{})
	}
	if _, err := b.call("Subscribe", uint64(1), map[string]dbus.Variant{}); !errors.Is(err, mihf.ErrExists) {
		t.Errorf("the same stream again: %v", err)
	}
	if _, err := b.call("Subscribe", uint64(2), map[string]dbus.Variant{}); !errors.Is(err, mihf.ErrLimit) {
		t.Errorf("a stream too many: %v", err)
	}
	results := make(chan error, 10)
	status := func() { _, err := a.call("Status"); results <- err }
	go status()
	<-waiting // it is being done
	for range 4 {
		go status() // three wait, one is refused
	}
	if err := <-results; !errors.Is(err, mihf.ErrLimit) {
		t.Errorf("a call too many: %v", err)
	}
	if _, err := c.call("GetSnapshot"); !errors.Is(err, mihf.ErrLimit) {
		t.Errorf("a sender too many: %v", err)
	}
	free()
	for range 4 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	w.until("the first sender can be forgotten", func() bool { _, err := c.call("GetSnapshot"); return err == nil })
	if n := w.server.Counts().Refused; n < 2 {
		t.Errorf("%d refused calls were counted", n)
	}
}

// panicky is a broker whose attachments panic at the first registration.
type panicky struct {
	front.Broker
	mihf.Attachment
	panicked *atomic.Bool
}

func (b panicky) Attach(ctx context.Context, who mihf.Caller) (mihf.Attachment, error) {
	at, err := b.Broker.Attach(ctx, who)
	b.Attachment = at
	return b, err
}

func (b panicky) Register(spec mihf.FlowSpec) (mihf.Registration, error) {
	if b.panicked.CompareAndSwap(false, true) {
		panic("as the test wants it")
	}
	return b.Attachment.Register(spec)
}

// A panic in a registration holds up neither the next one nor the hints.
func TestPanicInARegistration(t *testing.T) {
	w := newBed(t, func(o *dbusfront.Options) { o.Broker = panicky{Broker: o.Broker, panicked: new(atomic.Bool)} })
	p := w.dial()
	w.see(wlan, facts(true))
	spec := map[string]dbus.Variant{"link": dbus.MakeVariant(string(wlan)), "late_freeze": dbus.MakeVariant(true)}
	if _, err := p.call("RegisterFlow", spec); err == nil || !strings.Contains(err.Error(), "internal error") {
		t.Error(err)
	}
	p.must("RegisterFlow", spec)
	w.see(wlan, facts(false))
	p.next(dbusapi.FlowInterface + ".Freeze")
}

// "How many wait, of one user and of all, is bounded", and how many octets: they are not
// decoded while they wait, and one user cannot take all the room.
func TestWaitingOctets(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{}, 100)
	w := newBed(t, func(o *dbusfront.Options) {
		b := o.Broker
		o.Broker = wraps{Broker: b, status: func(ctx context.Context, who mihf.Caller) (mihf.Status, error) {
			begun <- struct{}{}
			<-release
			return b.Status(ctx, who)
		}}
	})
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	large := strings.Repeat("x", 60<<10)
	fill := func(calls int) {
		p := w.dial()
		for i := range calls + 1 {
			args := []any{large}
			if i == 0 {
				args = nil // is being done while the others wait
			}
			if err := p.Room(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := p.Tell(dbusapi.Name, dbusapi.Root, dbusapi.BrokerInterface, "Status", args...); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				<-begun
			}
		}
		if _, err := p.Bus(t.Context(), "GetId"); err != nil { // all before it was passed on
			t.Fatal(err)
		}
	}
	for range 3 {
		fill(20) // 1.2 MiB
	}
	if n := w.server.Counts().Refused; n != 0 {
		t.Errorf("%d refused before there are 4 MiB", n)
	}
	fill(20)
	w.until("the user's are refused, by whatever connection they come", func() bool { return w.server.Counts().Refused > 0 })
	free()
	w.until("there is room again", func() bool { _, err := w.dial().call("Status"); return err == nil })
}

// "A panic in a call ends that call only", and what makes no sense is refused and counted.
func TestMalformedAndPanic(t *testing.T) {
	var first atomic.Bool
	w := newBed(t, func(o *dbusfront.Options) {
		b := o.Broker
		o.Broker = wraps{Broker: b, status: func(ctx context.Context, who mihf.Caller) (mihf.Status, error) {
			if first.CompareAndSwap(false, true) {
				panic("as the test wants it")
			}
			return b.Status(ctx, who)
		}}
	})
	p := w.dial()
	if _, err := p.call("Status"); err == nil || !strings.Contains(err.Error(), "internal error") {
		t.Error(err)
	}
	p.must("Status")
	v := dbus.MakeVariant
	for what, call := range map[string]func() ([]any, error){
		"key":  func() ([]any, error) { return p.call("RegisterFlow", map[string]dbus.Variant{"lnik": v("x")}) },
		"type": func() ([]any, error) { return p.call("RegisterFlow", map[string]dbus.Variant{"link": v(5)}) },
		"link": func() ([]any, error) { return p.call("GetParameters", "wlan0") },
		"kind": func() ([]any, error) {
			return p.call("Subscribe", uint64(1), map[string]dbus.Variant{"kinds": v([]string{"link_sideways"})})
		},
		"nested": func() ([]any, error) {
			return p.call("ConfigureThresholds", string(wlan), []map[string]dbus.Variant{{"threshold": v(v("x"))}})
		},
		"id": func() ([]any, error) { return p.call("Explain", "x") },
	} {
		if _, err := call(); !errors.Is(err, mihf.ErrInvalid) || len(err.Error()) < 20 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if c := w.server.Counts(); c.Malformed != 6 || c.Panics != 1 {
		t.Errorf("%+v", c)
	}
	for _, tc := range []struct {
		method string
		args   []any
	}{
		{"UnregisterFlow", []any{"01ARZ3NDEKTSV4RRFFQ69G5FAV"}},
		{"UpdateFlow", []any{map[string]dbus.Variant{"flow": v("01ARZ3NDEKTSV4RRFFQ69G5FAV")}}},
		{"Acknowledge", []any{map[string]dbus.Variant{"flow": v("01ARZ3NDEKTSV4RRFFQ69G5FAV"), "epoch": v(uint64(1)), "result": v("late")}}},
		{"CloseStream", []any{uint64(5)}},
	} {
		if _, err := p.call(tc.method, tc.args...); !errors.Is(err, mihf.ErrNotFound) {
			t.Errorf("%s of what is not there: %v", tc.method, err)
		}
	}
}

// The calls of one sender are done in its order, whatever others do.
func TestCallsOfASenderAreInOrder(t *testing.T) {
	w := newBed(t, nil)
	p := w.dial()
	w.see(wlan, facts(true))
	w.until("the link is there", func() bool { _, err := p.call("GetParameters", string(wlan)); return err == nil })
	reg := p.must("RegisterFlow", map[string]dbus.Variant{"link": dbus.MakeVariant(string(wlan))})[0].(map[string]dbus.Variant)
	for i := range 200 {
		update := map[string]dbus.Variant{"flow": reg["flow"], "rtt_ns": dbus.MakeVariant(int64(i+1) * 1e6)}
		if err := p.Tell(dbusapi.Name, dbusapi.Root, dbusapi.BrokerInterface, "UpdateFlow", update); err != nil {
			t.Fatal(err)
		}
	}
	snap := p.must("GetSnapshot")[0].(map[string]dbus.Variant)
	flow := snap["flows"].Value().([]map[string]dbus.Variant)[0]
	if rtt := flow["spec"].Value().(map[string]dbus.Variant)["rtt_ns"].Value(); rtt != int64(200e6) {
		t.Errorf("after 200 updates the RTT is %v", rtt)
	}
}

// What belongs to a connection ends with it.
func TestConnectionEnds(t *testing.T) {
	w := newBed(t, nil)
	counts := func() (subscribers, flows int) {
		st, err := w.broker.Status(t.Context(), mihf.Caller{UID: mihf.Some(uint32(0))})
		if err != nil {
			t.Fatal(err)
		}
		return st.Subscribers, st.Flows
	}
	const before = 1 // the front's own
	w.until("the front listens", func() bool { s, _ := counts(); return s == before })
	p := w.dial()
	p.must("Subscribe", uint64(1), map[string]dbus.Variant{})
	p.must("Record", uint64(2))
	p.must("RegisterFlow", map[string]dbus.Variant{"link": dbus.MakeVariant(string(wlan))})
	if s, f := counts(); s <= before || f != 1 {
		t.Fatalf("%d subscribers, %d flows", s, f)
	}
	p.Close()
	w.until("all is gone", func() bool { s, f := counts(); return s == before && f == 0 })
}
