package broker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/broker"
)

func TestParametersAndThresholds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(c *broker.Config) {
			c.Access = access.New(0, access.Default, access.Grant{UIDs: []uint32{1000}, Roles: access.Of(access.Command)})
		})
		b.give(wlan, rssi(-60))
		s, err := b.Parameters(t.Context(), bob, wlan)
		if v, ok := s.Values.Get(mihf.ParamRSSI); err != nil || !ok || v != -60 {
			t.Errorf("got %v, %v, %v", v, ok, err)
		}
		if _, err := b.Parameters(t.Context(), bob, wwan); !errors.Is(err, mihf.ErrNotFound) {
			t.Errorf("unknown link: %v, want ErrNotFound", err)
		}
		items := []mihf.ThresholdConfig{{Parameter: mihf.ParamRSSI, Threshold: mihf.Some(mihf.Threshold{Value: -70, Direction: mihf.ThresholdBelow})}}
		for who, want := range map[uint32]error{1000: nil, 1001: mihf.ErrPermission, 0: nil} {
			if err := b.ConfigureThresholds(t.Context(), user(who), wlan, items); !errors.Is(err, want) {
				t.Errorf("uid %d: %v, want %v", who, err, want)
			}
		}
		r := read(t, b.subscribe(bob, mihf.SubscribeRequest{Kinds: mihf.Kinds(mihf.LinkParametersReport)}), 1)
		b.give(wlan, rssi(-75))
		if got := r.all(); len(got) != 2 || !got[1].Event.Report.Threshold.Known() {
			t.Errorf("no report of the crossing: %+v", got)
		}
	})
}

// "Flows of other owners are left out of it unless the caller may see them."
func TestExplainHidesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.register(b.attach(alice), quick)
		b.register(b.attach(bob), quick)
		b.give(wlan, facts(true))
		b.give(wlan, rssi(-85))
		for who, want := range map[uint32]int{1000: 2, 1001: 2, 1002: 1, 0: 3} {
			x, err := b.Explain(t.Context(), user(who), mihf.PredictionID{Boot: 1, N: 1})
			if err != nil || len(x.Decisions) != want {
				t.Fatalf("uid %d: %v, %v; want %d decisions", who, x, err, want)
			}
		}
		if _, err := b.Explain(t.Context(), alice, mihf.PredictionID{Boot: 1, N: 99}); !errors.Is(err, mihf.ErrNotFound) {
			t.Errorf("unknown prediction: %v, want ErrNotFound", err)
		}
	})
}

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(c *broker.Config) { c.Version = "v" })
		b.subscribe(alice, mihf.SubscribeRequest{})
		b.register(b.attach(alice), quick)
		b.give(wlan, facts(true))
		time.Sleep(time.Second)
		s, err := b.Status(t.Context(), alice)
		if err != nil || s.Version != "v" || s.Node != "n" || s.Boot != 1 || s.Uptime != time.Second || s.Subscribers != 2 || s.Flows != 1 || s.Links != 1 {
			t.Errorf("status %+v, %v", s, err)
		}
		if s.Sequence == 0 || b.counter("observations") != 1 || b.counter("events")+b.counter("hints") != s.Sequence {
			t.Errorf("counters %+v", s.Counters)
		}
	})
}

// recording runs Record in a goroutine.
type recording struct {
	cancel context.CancelFunc
	ended  chan struct{}
	lost   uint64
	err    error
}

func (b *bed) record(write func(*mihf.Observation) error) *recording {
	ctx, cancel := context.WithCancel(b.Context())
	r := &recording{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.lost, r.err = b.Record(ctx, root, write)
	}()
	synctest.Wait()
	return r
}

// "It loses none silently": all that came in is written, or counted.
func TestRecord(t *testing.T) {
	full := errors.New("disk full")
	for name, c := range map[string]struct {
		block         bool // the writer stands still until 100 came
		fail          int  // the write that fails; 0: none
		written, lost int
		err           error
	}{
		"all":      {false, 0, 100, 0, nil},
		"slow":     {true, 0, 9, 91, nil}, // one in its hands and 8 that wait
		"fails":    {false, 41, 40, 1, full},
		"both":     {true, 3, 2, 98, full},
		"at first": {true, 1, 0, 100, full},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, func(c *broker.Config) { c.Inputs = 8 })
				gate, written, calls := make(chan struct{}), 0, 0
				if !c.block {
					close(gate)
				}
				r := b.record(func(*mihf.Observation) error {
					<-gate
					if calls++; calls == c.fail {
						return full
					}
					written++
					return nil
				})
				for range 100 {
					b.give("", slept())
				}
				r.cancel()
				if c.block {
					close(gate)
				}
				<-r.ended
				if written != c.written || r.lost != uint64(c.lost) || !errors.Is(r.err, c.err) {
					t.Errorf("%d written, %d lost, %v; want %d, %d, %v", written, r.lost, r.err, c.written, c.lost, c.err)
				}
			})
		})
	}
}

func TestRecordNeedsAnAdministrator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		if _, err := b.Record(t.Context(), alice, nil); !errors.Is(err, mihf.ErrPermission) {
			t.Errorf("got %v, want ErrPermission", err)
		}
	})
}

// What came in before the broker ended is written.
func TestRecordEndsWithTheBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		gate, n := make(chan struct{}), 0
		r := b.record(func(*mihf.Observation) error { <-gate; n++; return nil })
		for range 10 {
			b.give("", slept())
		}
		b.end()
		close(gate)
		<-r.ended
		if n != 10 || r.lost != 0 || r.err != nil {
			t.Errorf("%d written, %d lost, %v; want 10, 0, nil", n, r.lost, r.err)
		}
	})
}
