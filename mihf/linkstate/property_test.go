package linkstate_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/linkstate"
)

// check holds what must be true of any history of events of one link.
type check struct {
	t      *rapid.T
	up     bool
	usable [2]bool
	open   mihf.Prediction // zero: none
	ended  uint64          // number of the newest prediction
}

func (c *check) event(now mihf.Time, e *mihf.Event) {
	if e.At > now || e.At == 0 || e.Link != wlan {
		c.t.Fatalf("%v at %v of %q, now %v", e.Kind, e.At, e.Link, now)
	}
	switch e.Kind {
	case mihf.LinkUp, mihf.LinkDown:
		if c.up == (e.Kind == mihf.LinkUp) {
			c.t.Fatalf("%v twice", e.Kind)
		}
		c.up = !c.up
		if e.Kind == mihf.LinkDown && (e.Down.Withheld < 0 || e.Down.Withheld > 3*time.Second) {
			c.t.Fatalf("withheld %v", e.Down.Withheld)
		}
	case mihf.PathUsable, mihf.PathLost:
		f := 0
		if e.Path.IPv6 {
			f = 1
		}
		if c.usable[f] == (e.Kind == mihf.PathUsable) {
			c.t.Fatalf("%v twice", e.Kind)
		}
		c.usable[f] = !c.usable[f]
	case mihf.LinkGoingDown:
		p := e.Prediction
		again := p.ID == c.open.ID && p.Revision == c.open.Revision+1
		first := c.open.ID.IsZero() && p.ID.N == c.ended+1 && p.Revision == 0
		if !c.up || (!again && !first) || p.P10 > p.P50 || p.P50 > p.P90 || p.Confidence < 0 || p.Confidence > 1 || p.ExpiresAt <= now {
			c.t.Fatalf("%+v after %+v, up %v", p, c.open, c.up)
		}
		c.open = p
	default:
	}
	if o := e.Prediction.Outcome; o != mihf.OutcomeOpen {
		if e.Prediction.ID != c.open.ID {
			c.t.Fatalf("outcome %v of %v, open is %v", o, e.Prediction.ID, c.open.ID)
		}
		c.ended, c.open = c.open.ID.N, mihf.Prediction{}
	}
}

// state compares the machine with what its events said.
func (c *check) state(now mihf.Time, m *linkstate.Machine) {
	if m.Announced() != c.up || m.Usable(false) != c.usable[0] || m.Usable(true) != c.usable[1] {
		c.t.Fatalf("the state is not what the events said")
	}
	if m.AnyUsable() && !m.Attached() {
		c.t.Fatal("usable, but not attached")
	}
	if m.Attached() && !m.Announced() {
		c.t.Fatal("attached without Link_Up")
	}
	if m.Announced() && !m.Attached() && !m.Withheld() {
		c.t.Fatal("up, not attached, and nothing is withheld")
	}
	if p := m.Open(); (p != nil) != !c.open.ID.IsZero() || (p != nil && p.ID != c.open.ID) {
		c.t.Fatalf("open is %v, said was %v", p, c.open.ID)
	}
	if next := m.Next(); next != 0 && next <= now {
		c.t.Fatalf("wants to be woken at %v, now %v", next, now)
	}
}

// act draws an observation or forecast of any kind, plausible or not.
func act(t *rapid.T, h *machineTest) {
	poa := rapid.SampledFrom([]mihf.PoA{apA, apB, ""}).Draw(t, "poa")
	ssid := rapid.SampledFrom([]string{"home", "home", "cafe", ""}).Draw(t, "ssid")
	p := rapid.Float64Range(0, 1)
	switch rapid.IntRange(0, 12).Draw(t, "act") {
	case 0, 1:
		h.give(device{
			v4: rapid.Bool().Draw(t, "v4"), v6: rapid.Bool().Draw(t, "v6"), down: rapid.IntRange(0, 2).Draw(t, "down") == 0,
			admin: rapid.IntRange(0, 9).Draw(t, "admin") == 0, tentative: rapid.Bool().Draw(t, "tentative"), noRoute: rapid.Bool().Draw(t, "noRoute"),
		}.facts())
	case 2, 3, 4:
		h.give(association(mihf.AssociationState(rapid.IntRange(0, 4).Draw(t, "association")), poa, ssid))
	case 5:
		h.give(left(mihf.DownReason(rapid.IntRange(0, 14).Draw(t, "reason")), rapid.Bool().Draw(t, "local")))
	case 6:
		o := radio(poa, float64(rapid.IntRange(-110, -10).Draw(t, "rssi")))
		o.Age = time.Duration(rapid.Int64Range(0, 2e9).Draw(t, "age"))
		h.give(o)
	case 7:
		h.give(&mihf.Observation{Kind: mihf.ObsHandover, PoA: poa})
	case 8:
		if rapid.IntRange(0, 5).Draw(t, "gone") == 0 {
			h.give(&mihf.Observation{Kind: mihf.ObsLinkGone, Gone: mihf.DownRemoved})
		}
	case 9, 10:
		loss := p.Draw(t, "loss")
		h.judge(loss, rapid.Float64Range(0.05, 10).Draw(t, "within"), (1-loss)*p.Draw(t, "handover"))
	case 11:
		h.m.Announce(h.now, h.forecast(p.Draw(t, "loss"), 10), &h.ev)
		h.take()
	case 12:
		if rapid.IntRange(0, 5).Draw(t, "resume") == 0 {
			h.now = h.now.Add(time.Duration(rapid.Int64Range(1e9, 1e13).Draw(t, "gap")))
			h.m.Advance(h.now, &h.ev)
			h.m.Resume(h.now, &h.ev)
			h.take()
		}
	}
}

// Any interleaving of observations, forecasts and time keeps every promise about the
// events of a link.
func TestAnyInterleaving(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := &machineTest{t: t, cfg: linkstate.Defaults(), ids: &linkstate.IDs{Boot: 7}, now: mihf.Time(time.Hour)}
		h.m = linkstate.New(h.cfg, wlan, h.ids)
		c := &check{t: rt}
		look := func() {
			for i := range h.got {
				e := &h.got[i]
				if e.Kind == mihf.LinkDown && e.Down.Withheld > 3*time.Second {
					e.Down.Withheld = 0 // a suspend was in between
				}
				c.event(h.now, e)
			}
			h.drop()
			c.state(h.now, h.m)
		}
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			act(rt, h)
			look()
			if d := time.Duration(rapid.SampledFrom([]int64{0, 1e6, 2e7, 1e8, 1e9, 4e9, 3e10}).Draw(rt, "wait")); d > 0 {
				h.advance(d)
				look()
			}
		}
		h.advance(time.Hour)
		look()
		if !c.open.ID.IsZero() {
			rt.Fatalf("%v has no outcome", c.open.ID)
		}
	})
}
