package sockdiag

import (
	"context"
	"errors"
	"iter"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// fakeConn answers each request with messages, after a time.
type fakeConn struct {
	takes  time.Duration
	answer func(family uint8) ([][]byte, error)
	asked  []time.Time
	family uint8
}

func (c *fakeConn) SetReadDeadline(time.Time) error { return nil }

func (c *fakeConn) Send(m netlink.Message) (netlink.Message, error) {
	c.family = m.Data[0]
	if c.family == unix.AF_INET {
		c.asked = append(c.asked, time.Now())
	}
	return m, nil
}

func (c *fakeConn) ReceiveIter() iter.Seq2[netlink.Message, error] {
	return func(yield func(netlink.Message, error) bool) {
		time.Sleep(c.takes)
		list, err := c.answer(c.family)
		if err != nil {
			yield(netlink.Message{}, err)
			return
		}
		for _, data := range list {
			if !yield(netlink.Message{Header: netlink.Header{Type: msgByFamily}, Data: data}, nil) {
				return
			}
		}
	}
}

func nothing(uint8) ([][]byte, error) { return nil, nil }

// sessionTest runs a session in a bubble until its time is over.
func (c *fakeConn) run(t *testing.T, s *Sensor, d time.Duration) (out []mihf.Observation, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	ses := &session{sensor: s, conn: c, state: newState(), watched: &watchSet{}}
	err = ses.run(ctx, func(o *mihf.Observation) { out = append(out, *o) }, func(mihf.Condition, string) {})
	return out, err
}

func newSensor() *Sensor {
	return New(Options{Clock: clock.Process(), Addresses: func() map[netip.Addr]mihf.LinkID {
		return map[netip.Addr]mihf.LinkID{netip.MustParseAddr("192.0.2.57"): wlan}
	}})
}

// "Between two readings the sensor rests fifty times as long as the last one took."
func TestRests(t *testing.T) {
	for _, tc := range []struct{ takes, gap time.Duration }{
		{0, defaultPoll}, {time.Millisecond, 500 * time.Millisecond}, {10 * time.Millisecond, time.Second}, {time.Second, longestRest},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &fakeConn{takes: tc.takes, answer: nothing}
			if _, err := c.run(t, newSensor(), time.Minute); err != nil {
				t.Fatal(err)
			}
			for i := 1; i < len(c.asked); i++ {
				if got := c.asked[i].Sub(c.asked[i-1]) - 2*tc.takes; got != tc.gap {
					t.Fatalf("a reading of %v is followed by %v of rest, want %v", 2*tc.takes, got, tc.gap)
				}
			}
			if len(c.asked) < 3 {
				t.Errorf("read %d times in a minute", len(c.asked))
			}
		})
	}
}

// A flow that is watched is read within 0.1 s, and no sooner, however often somebody watches.
func TestWatchIsReadSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := &fakeConn{answer: nothing}, newSensor()
		go func() {
			for range 200 {
				time.Sleep(5 * time.Millisecond)
				s.Watch(nil)
			}
		}()
		if _, err := c.run(t, s, 950*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // for the goroutine above to end
		if n := len(c.asked); n != 10 {
			t.Errorf("%d readings in 950 ms, want 10", n)
		}
	})
}

// What cannot be read costs its message only; a kernel without IPv6 is one; other refusals end the session.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := message("192.0.2.57:40112", "198.51.100.7:443", whole, busy)
		s := newSensor()
		c := &fakeConn{answer: func(family uint8) ([][]byte, error) {
			if family == unix.AF_INET6 {
				return nil, &netlink.OpError{Op: "receive", Err: unix.ENOENT}
			}
			return [][]byte{good[:20], good}, nil
		}}
		out, err := c.run(t, s, time.Second)
		if err != nil || len(out) != 1 || out[0].Link != wlan || *out[0].Flow != want(func(r *mihf.FlowReading) { all(r); r.ReceiveRTT = unknown }) {
			t.Errorf("%+v, %v", out, err)
		}
		count := map[string]uint64{}
		for _, v := range s.Counters() {
			count[v.Name] = v.Value
		}
		if count["mihf_sock_diag_malformed_messages_total"] != 3 || count["mihf_sock_diag_sockets_total"] != 3 || count["mihf_sock_diag_readings_total"] != 3 {
			t.Errorf("%v", count)
		}

		c.answer = func(uint8) ([][]byte, error) { return nil, unix.ENOENT }
		if _, err := c.run(t, s, time.Second); !errors.Is(err, unix.ENOENT) {
			t.Errorf("a kernel without sock_diag: %v", err)
		}
	})
}

// Where nothing is watched and no link has an address the kernel is not asked.
func TestNothingToAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, s := range []*Sensor{New(Options{Clock: clock.Process()}), New(Options{Clock: clock.Process(), Addresses: newSensor().opt.Addresses, RegisteredOnly: true})} {
			c := &fakeConn{answer: nothing}
			if _, err := c.run(t, s, 10*time.Second); err != nil || len(c.asked) != 0 {
				t.Errorf("asked %d times, %v", len(c.asked), err)
			}
			s.Watch([]mihf.Endpoints{{Protocol: 6, Remote: netip.MustParseAddrPort("198.51.100.7:443")}})
			if _, err := c.run(t, s, time.Second); err != nil || len(c.asked) == 0 {
				t.Errorf("never asked for a watched flow, %v", err)
			}
		}
	})
}
