package attach

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

const (
	start = mihf.Time(time.Hour)
	lease = 3 * time.Second
)

// leaseTest is a script of what happens to a flow, and what it must do.
type leaseTest struct {
	*testing.T
	now mihf.Time
	l   Lease
}

func newLeaseTest(t *testing.T) *leaseTest {
	t.Helper()
	lt := &leaseTest{T: t, now: start}
	lt.registered(1, false)
	return lt
}

func (t *leaseTest) after(d time.Duration) { t.now = t.now.Add(d) }

func (t *leaseTest) registered(boot mihf.BootID, wantThaw bool) {
	t.Helper()
	if got := t.l.Registered(&mihf.Registration{Boot: boot}); got != wantThaw {
		t.Errorf("registered with run %v: thaw %v, want %v", boot, got, wantThaw)
	}
}

// hint gives a hint of run 1 that was made age ago.
func (t *leaseTest) hint(epoch uint64, k mihf.HintKind, age time.Duration, wantApply bool, wantAck mihf.AckResult) {
	t.Helper()
	h := mihf.Hint{Boot: 1, Epoch: epoch, Kind: k, At: t.now.Add(-age), Freeze: mihf.Freeze{Lease: lease}}
	if t.l.Advance(t.now) {
		t.Errorf("a lapse that the script does not expect")
	}
	apply, ack := t.l.Hint(t.now, &h)
	if apply != wantApply || ack != wantAck {
		t.Errorf("%v %d: apply %v, ack %v, want %v, %v", k, epoch, apply, ack, wantApply, wantAck)
	}
}

func (t *leaseTest) wantLapse(want bool) {
	t.Helper()
	if got := t.l.Advance(t.now); got != want {
		t.Errorf("lapse %v, want %v", got, want)
	}
}

func (t *leaseTest) wantNext(want mihf.Time) {
	t.Helper()
	if got := t.l.Next(); got != want {
		t.Errorf("next %v, want %v", got, want)
	}
}

const (
	applied = mihf.AckApplied
	late    = mihf.AckLate
)

func TestLease(t *testing.T) {
	for name, script := range map[string]func(*leaseTest){
		"freeze and unfreeze": func(t *leaseTest) {
			t.hint(1, mihf.HintFreeze, 0, true, applied)
			t.wantNext(start.Add(lease))
			t.after(time.Second)
			t.hint(2, mihf.HintUnfreeze, 0, true, applied)
			t.wantNext(0)
			t.after(lease)
			t.wantLapse(false)
		},
		"lapse": func(t *leaseTest) {
			t.hint(1, mihf.HintFreeze, 0, true, applied)
			t.after(lease - 1)
			t.wantLapse(false)
			t.after(1)
			t.wantLapse(true)
			t.wantLapse(false)
		},
		"the lease counts from the arrival": func(t *leaseTest) {
			t.hint(1, mihf.HintFreeze, time.Second, true, applied)
			t.wantNext(start.Add(lease))
		},
		"renewal": func(t *leaseTest) {
			t.hint(1, mihf.HintFreeze, 0, true, applied)
			t.after(2 * time.Second)
			t.hint(2, mihf.HintFreeze, 0, false, applied)
			t.wantNext(start.Add(2*time.Second + lease))
		},
		"a freeze older than its lease": func(t *leaseTest) {
			t.hint(1, mihf.HintFreeze, lease, false, late)
			t.wantNext(0)
		},
		"an old renewal does not renew": func(t *leaseTest) {
			t.hint(1, mihf.HintFreeze, 0, true, applied)
			t.after(time.Second)
			t.hint(2, mihf.HintFreeze, lease, false, late)
			t.wantNext(start.Add(lease))
		},
		"an older epoch": func(t *leaseTest) {
			t.hint(5, mihf.HintUnfreeze, 0, false, applied)
			t.hint(4, mihf.HintFreeze, 0, false, late)
		},
		"a copy": func(t *leaseTest) {
			t.hint(1, mihf.HintFreeze, 0, true, applied)
			t.after(time.Second)
			t.hint(1, mihf.HintFreeze, 0, false, applied)
			t.wantNext(start.Add(lease))
		},
		"a copy after the lapse does not freeze again": func(t *leaseTest) {
			t.hint(1, mihf.HintFreeze, 0, true, applied)
			t.after(lease)
			t.wantLapse(true)
			t.hint(1, mihf.HintFreeze, 0, false, applied)
			t.wantNext(0)
		},
		"an unfreeze after the lapse is not a second one": func(t *leaseTest) {
			t.hint(1, mihf.HintFreeze, 0, true, applied)
			t.after(lease)
			t.wantLapse(true)
			t.hint(2, mihf.HintUnfreeze, 0, false, applied)
		},
		"a newer freeze after the lapse": func(t *leaseTest) {
			t.hint(1, mihf.HintFreeze, 0, true, applied)
			t.after(lease)
			t.wantLapse(true)
			t.hint(2, mihf.HintFreeze, 0, true, applied)
		},
		"other hints": func(t *leaseTest) {
			t.hint(1, mihf.HintPrepare, time.Minute, true, applied)
			t.hint(2, mihf.HintCharacteristics, 0, true, applied)
		},
		"the same run again": func(t *leaseTest) {
			t.hint(9, mihf.HintFreeze, 0, true, applied)
			t.registered(1, false) // epochs begin again, the lease runs on
			t.wantNext(start.Add(lease))
			t.hint(1, mihf.HintUnfreeze, 0, true, applied)
		},
		"another run": func(t *leaseTest) {
			t.hint(9, mihf.HintFreeze, 0, true, applied)
			t.registered(2, true)
			t.wantNext(0)
			t.hint(10, mihf.HintFreeze, 0, false, late) // of run 1
		},
		"end": func(t *leaseTest) {
			t.hint(1, mihf.HintFreeze, 0, true, applied)
			if !t.l.End() || t.l.End() {
				t.Error("end must thaw once")
			}
		},
	} {
		t.Run(name, func(t *testing.T) { script(newLeaseTest(t)) })
	}
}

// leaseModel checks a lease against what may happen in any order.
type leaseModel struct {
	*rapid.T
	l      Lease
	now    mihf.Time
	boot   mihf.BootID
	sent   uint64 // epochs given out in this registration
	seen   uint64 // newest epoch applied
	frozen bool   // by the calls that the transport would have had
	bound  mihf.Time
}

func (m *leaseModel) thaw() {
	if !m.frozen {
		m.Fatal("an unfreeze without a freeze")
	}
	m.frozen = false
}

func (m *leaseModel) hint() {
	m.sent++
	h := mihf.Hint{
		Boot: m.boot - mihf.BootID(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(m.T, "old boot")), Epoch: rapid.Uint64Range(1, m.sent).Draw(m.T, "epoch"),
		Kind: rapid.SampledFrom([]mihf.HintKind{mihf.HintFreeze, mihf.HintFreeze, mihf.HintUnfreeze, mihf.HintSwitch}).Draw(m.T, "kind"),
		At:   m.now.Add(-time.Duration(rapid.IntRange(-1, 5).Draw(m.T, "age")) * time.Second),
	}
	h.Freeze.Lease = time.Duration(rapid.IntRange(0, 4).Draw(m.T, "lease")) * time.Second
	if m.l.Advance(m.now) {
		m.thaw()
	}
	apply, ack := m.l.Hint(m.now, &h)
	if apply {
		if h.Epoch <= m.seen || h.Boot != m.boot {
			m.Fatalf("epoch %d of run %v applied after %d of %v", h.Epoch, h.Boot, m.seen, m.boot)
		}
		m.seen = h.Epoch
		switch h.Kind {
		case mihf.HintFreeze:
			if m.frozen {
				m.Fatal("a second freeze")
			}
			m.frozen = true
		case mihf.HintUnfreeze:
			m.thaw()
		default:
		}
	}
	if h.Kind == mihf.HintFreeze && ack == mihf.AckApplied && h.Boot == m.boot && h.Epoch >= m.seen {
		m.bound = max(m.bound, m.now.Add(h.Freeze.Lease))
	}
}

// Never frozen longer than the lease after the last hint, epochs rise, every freeze is
// followed by exactly one unfreeze.
func TestLeaseInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &leaseModel{T: rt, now: start, boot: 1}
		m.l.Registered(&mihf.Registration{Boot: 1})
		rt.Repeat(map[string]func(*rapid.T){
			"hint": func(*rapid.T) { m.hint() },
			"pass": func(*rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(rt, "ms")) * time.Millisecond)
			},
			"wake": func(*rapid.T) {
				if m.l.Advance(m.now) {
					m.thaw()
				}
			},
			"register": func(*rapid.T) {
				m.boot += mihf.BootID(rapid.IntRange(0, 1).Draw(rt, "restart"))
				m.sent, m.seen = 0, 0
				if m.l.Registered(&mihf.Registration{Boot: m.boot}) {
					m.thaw()
				}
			},
			"": func(*rapid.T) {
				if m.frozen != m.l.Frozen() {
					m.Fatalf("the transport is frozen: %v, the lease says %v", m.frozen, m.l.Frozen())
				}
				if m.frozen && m.l.Next() > m.bound {
					m.Fatalf("frozen until %v, the last lease ends at %v", m.l.Next(), m.bound)
				}
			},
		})
		if m.l.End() {
			m.thaw()
		}
		if m.frozen {
			rt.Fatal("frozen for ever")
		}
	})
}
