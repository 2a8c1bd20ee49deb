package nce_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/transports/nce"
)

const ms = time.Millisecond

// radio is the paper's bottleneck: 6 Mbit/s and 50 packets of 1000 octets, of which 45
// are 60 ms.
var radio = nce.Path{RateBPS: 6e6, BufferOctets: 50_000}

func at(p nce.Path, rtts ...time.Duration) *nce.Machine {
	m := &nce.Machine{}
	m.SetPath(p, true)
	for _, r := range rtts {
		m.RTT(r)
	}
	return m
}

// TestDetection has the threshold on both sides, with and without link characteristics.
func TestDetection(t *testing.T) {
	for name, tt := range map[string]struct {
		m    *nce.Machine
		want bool
	}{
		"queue below nine tenths":               {at(radio, 20*ms, 79*ms), false},
		"queue above nine tenths":               {at(radio, 20*ms, 81*ms), true},
		"the queue has gone":                    {at(radio, 20*ms, 86*ms, 30*ms), false},
		"nothing known":                         {at(nce.Path{}), true},
		"no queue was ever seen":                {at(nce.Path{}, 20*ms, 20*ms), true},
		"relative, below nine tenths":           {at(nce.Path{}, 20*ms, 120*ms, 109*ms), false},
		"relative, above nine tenths":           {at(nce.Path{}, 20*ms, 120*ms, 111*ms), true},
		"a rate without a buffer":               {at(nce.Path{RateBPS: 6e6}, 20*ms, 120*ms, 111*ms), true},
		"no sample, whatever the buffer may be": {at(radio), true},
	} {
		if got := tt.m.Congested(); got != tt.want {
			t.Errorf("%s: congested %v, want %v", name, got, tt.want)
		}
	}
	if got := at(radio, 20*ms, 80*ms).QueueOctets(); got != 45_000 {
		t.Errorf("queue of %v octets, want 45000", got)
	}
}

// TestFigure11: 4 is acknowledged, 5 to 11 are sent and 5 is lost. 12 is sent at the third
// duplicate, 5 again at the duplicate of 12, and not if it comes before that.
func TestFigure11(t *testing.T) {
	m := at(radio, 20*ms, 30*ms)
	if v := m.Third(7); v != nce.NotCongestion {
		t.Fatalf("verdict %v", v)
	}
	for i := range 3 { // of 9, 10 and 11
		if m.Duplicate() {
			t.Fatalf("retransmission at duplicate %d after the third", i+1)
		}
	}
	if !m.Duplicate() { // of 12
		t.Fatal("no retransmission at the duplicate of what was sent after the third")
	}
	if m.Duplicate() {
		t.Fatal("a second retransmission of one hole")
	}
	if got := m.Filled(); got != nce.Loss {
		t.Errorf("outcome %v, want a loss", got)
	}
	m.WindowDone()
	if v := m.Third(7); v != nce.NotCongestion {
		t.Fatalf("verdict %v", v)
	}
	m.Duplicate()
	if got := m.Filled(); got != nce.Reordering {
		t.Errorf("outcome %v, want reordering", got)
	}
	if s := m.Stats(); s.Losses != 1 || s.Reorderings != 1 {
		t.Errorf("%+v, want one of each", s)
	}
}

func TestNeverTwoWindowsRunning(t *testing.T) {
	m := at(radio, 20*ms, 30*ms)
	lose(m)
	if v := m.Third(10); v != nce.Congestion {
		t.Error("the next window's event is ignored as well")
	}
	if v := m.Third(10); v != nce.NotCongestion {
		t.Error("after a response the next one is congestion too")
	}
	if s := m.Stats(); s.Bounded != 1 {
		t.Errorf("%+v, want one bounded", s)
	}
}

func lose(m *nce.Machine) {
	m.Third(4)
	m.Duplicate()
	m.Filled()
}

func TestUnbounded(t *testing.T) {
	m := nce.Unbounded()
	m.SetPath(radio, true)
	m.RTT(20 * ms)
	for range 100 {
		lose(m)
	}
	if s := m.Stats(); s.Losses != 100 || s.Bounded != 0 {
		t.Errorf("%+v, want 100 losses ignored", s)
	}
}

// TestBound: whatever the losses, no more than the part that is promised is ignored, over
// any long run.
func TestBound(t *testing.T) {
	m := at(radio, 20*ms, 30*ms)
	const sent = 100_000
	holes := uint64(0)
	for range sent / 10 { // a loss in each ten packets
		m.Sent(10)
		if m.Third(10) == nce.NotCongestion {
			for lost := false; !lost; {
				lost = m.Duplicate()
			}
			m.Filled()
			for m.Hole() {
				holes++
			}
		}
		m.WindowDone()
	}
	s := m.Stats()
	if part := float64(s.Losses+holes) / sent; part > nce.MaxIgnored {
		t.Errorf("%.3f of the packets were lost without a response, the bound is %v", part, nce.MaxIgnored)
	}
	if s.Losses == 0 || s.Bounded == 0 {
		t.Errorf("%+v: neither ignored nor bounded", s)
	}
}

func TestTimeoutAndNewPath(t *testing.T) {
	m := at(radio, 20*ms, 30*ms)
	m.Third(10)
	m.Timeout()
	if m.Delaying() || m.Duplicate() || m.Filled() != nce.None {
		t.Error("a hole is waited for after a timeout")
	}
	m.SetPath(radio, true)
	if !m.Congested() {
		t.Error("another path's round-trip times are used")
	}
}

// TestWaitEnds: however few or many are outstanding, a hole is retransmitted once, at the
// latest one duplicate after all of them.
func TestWaitEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := at(radio, 20*ms, 30*ms)
		outstanding := rapid.IntRange(0, 10_000).Draw(t, "outstanding")
		m.Third(outstanding)
		at, times := 0, 0
		for i := range outstanding + 10 {
			if m.Duplicate() {
				at, times = i+1, times+1
			}
		}
		if times != 1 || at > max(1, outstanding-3)+1 {
			t.Fatalf("%d retransmissions, the last at duplicate %d of %d outstanding", times, at, outstanding)
		}
	})
}

func TestNoAllocation(t *testing.T) {
	m := at(radio, 20*ms)
	if n := testing.AllocsPerRun(100, func() {
		m.RTT(30 * ms)
		m.Sent(1)
		lose(m)
		m.WindowDone()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
