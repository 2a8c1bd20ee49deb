package linkstate_test

import (
	"math"
	"testing"
	"time"

	"mihf.dev/mihf"
)

// Link_Going_Down is published when P(loss within horizon) ≥ threshold.
func TestAnnouncement(t *testing.T) {
	h := onWiFi(t)
	h.judge(0.98, 4) // 0.49 within 2 s
	h.want()
	h.judge(1, 4)
	h.want("link_going_down 1.0 loss")
	p := h.m.Open()
	if p.OpenedAt != h.now || p.P10 <= 0 || p.P10 > p.P50 || p.P50 > p.P90 || p.Confidence < 0.85 || p.ID.Boot != 7 {
		t.Errorf("%+v", p)
	}
	h.judge(1, 4)
	h.want() // "At most one is open."
	// Not while the link is down.
	h = newMachine(t)
	h.give(device{down: true}.facts())
	h.judge(1, 1)
	if h.m.Announce(h.now, h.forecast(1, 1), &h.ev) || h.m.MayAnnounce(h.now, h.forecast(1, 1)) {
		t.Error("announced of a link that is down")
	}
}

// "A prediction has exactly one outcome", each way to end it.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(h *machineTest)
		want []string
	}{
		{"rollback", func(h *machineTest) {
			for range 12 {
				h.judge(0.1, 1)
				h.advance(50 * time.Millisecond)
			}
		}, []string{"link_event_rollback ends 1 rollback"}},
		{"expired", func(h *machineTest) { h.advance(11 * time.Second) }, []string{"prediction_expired ends 1 expired"}},
		{
			"link down at once", func(h *machineTest) { h.give(device{admin: true, down: true}.facts()) },
			[]string{"address_changed 192.0.2.7/24>invalid Prefix", "path_lost v4 link_down", "link_down admin withheld 0s ends 1 link_down"},
		},
		{
			"link down after settling", func(h *machineTest) { h.give(left(mihf.DownBeaconLoss, false)); h.advance(time.Second) },
			[]string{"path_lost v4 link_down", "link_down beacon_loss withheld 30ms ends 1 link_down"},
		},
		{"withheld past its expiry", func(h *machineTest) {
			h.advance(1900 * time.Millisecond)
			h.give(left(mihf.DownExplicitDisconnect, true))
			h.advance(5 * time.Second)
		}, []string{"path_lost v4 link_down", "link_down explicit_disconnect withheld 3s ends 1 link_down"}},
		{"roam", func(h *machineTest) {
			h.give(left(mihf.DownExplicitDisconnect, true))
			h.advance(100 * time.Millisecond)
			h.give(association(mihf.AssociationAuthorised, apB, "home"))
		}, []string{"path_lost v4 link_down", "link_handover_complete a>b gap 100ms ends 1 handover_complete", "path_usable v4"}},
		{
			"roam seen late", func(h *machineTest) { h.give(radio(apB, -50)) },
			[]string{"link_handover_complete a>b gap 0s ends 1 handover_complete", "link_parameters_report rssi_dbm -50"},
		},
		{"back at the same", func(h *machineTest) {
			h.give(left(mihf.DownExplicitDisconnect, true))
			h.advance(100 * time.Millisecond)
			h.give(association(mihf.AssociationAuthorised, apA, "home"))
		}, []string{"path_lost v4 link_down", "link_event_rollback ends 1 rollback", "path_usable v4"}},
		{"gone while withheld", func(h *machineTest) {
			h.give(left(mihf.DownExplicitDisconnect, true))
			h.give(&mihf.Observation{Kind: mihf.ObsLinkGone, Gone: mihf.DownRemoved})
		}, []string{"path_lost v4 link_down", "link_down removed withheld 0s ends 1 link_down", "link_removed removed"}},
		{
			"other network", func(h *machineTest) { h.give(association(mihf.AssociationAuthorised, apB, "cafe")) },
			[]string{"path_lost v4 link_down", "link_down explicit_disconnect withheld 0s ends 1 link_down", "link_up", "path_usable v4"},
		},
		{"suspend", func(h *machineTest) { h.m.Resume(h.now, &h.ev); h.take() }, []string{"prediction_expired ends 1 expired"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := onWiFi(t)
			h.judge(0.9, 1)
			h.want("link_going_down 1.0 loss")
			c.do(h)
			h.want(c.want...)
			h.advance(time.Minute)
			h.want()
			if h.m.Open() != nil {
				t.Error("still open")
			}
		})
	}
}

// While Link_Down is withheld a forecast neither takes the prediction back nor revises it:
// the link is gone, and only its outcome counts.
func TestForecastWhileWithheld(t *testing.T) {
	h := onWiFi(t)
	h.judge(0.9, 1)
	h.want("link_going_down 1.0 loss")
	h.give(left(mihf.DownExplicitDisconnect, true))
	h.want("path_lost v4 link_down")
	for _, loss := range []float64{0, 0, 0, 1, 1} {
		h.advance(400 * time.Millisecond)
		h.judge(loss, 0.1)
		h.want()
	}
	h.advance(time.Second)
	h.want("link_down explicit_disconnect withheld 3s ends 1 link_down")
}

// A fade that recovers for less than RollbackFor takes nothing back.
func TestRollbackNeedsTime(t *testing.T) {
	h := onWiFi(t)
	h.judge(0.9, 1)
	h.want("link_going_down 1.0 loss")
	for range 5 {
		h.judge(0.1, 1)
		h.advance(300 * time.Millisecond)
		h.judge(0.9, 1)
		h.advance(10 * time.Millisecond)
	}
	for i := range h.got {
		if h.got[i].Kind != mihf.LinkGoingDown {
			t.Error(show(&h.got[i]))
		}
	}
	h.drop()
}

// A loss that turns into a handover is not taken back: the attachment ends either way.
func TestHandoverInsteadOfLoss(t *testing.T) {
	h := onWiFi(t)
	h.judge(0.9, 1)
	h.want("link_going_down 1.0 loss")
	for range 20 {
		h.judge(0.05, 1, 0.9)
		h.advance(50 * time.Millisecond)
	}
	h.drop()
	if h.m.Open() == nil {
		t.Fatal("taken back")
	}
	h.give(radio(apB, -50))
	h.want("link_handover_complete a>b gap 0s ends 1 handover_complete", "link_parameters_report rssi_dbm -50")
}

// A predicted handover that turns into a loss becomes one, in a revision.
func TestLossInsteadOfHandover(t *testing.T) {
	h := onWiFi(t)
	h.judge(0, 1, 0.8)
	h.want("link_going_down 1.0 handover")
	h.judge(0.8, 1, 0.1)
	h.want("link_going_down 1.1 loss")
	h.give(device{v4: true, admin: true, down: true}.facts())
	h.want("path_lost v4 link_down", "link_down admin withheld 0s ends 1 link_down")
	// The same where a flow's rule fires first.
	h = onWiFi(t)
	h.judge(0, 1, 0.8)
	h.want("link_going_down 1.0 handover")
	if !h.m.Announce(h.now, h.forecast(0.3, 1, 0.6), &h.ev) {
		t.Error("refused")
	}
	h.take()
	h.want("link_going_down 1.1 loss")
	h.drop()
	h.advance(time.Minute)
	h.want("prediction_expired ends 1 expired")
}

// "or when the first flow's rule fires, whichever is earlier": such a prediction is not
// taken back for being below the threshold that it never reached.
func TestAnnouncedForAFlow(t *testing.T) {
	h := onWiFi(t)
	f := h.forecast(0.8, 10) // 0.16 within 2 s
	h.m.Forecast(h.now, f, &h.ev)
	if !h.m.MayAnnounce(h.now, f) || !h.m.Announce(h.now, f, &h.ev) || !h.m.Announce(h.now, f, &h.ev) {
		t.Fatal("refused")
	}
	h.take()
	h.want("link_going_down 1.0 loss")
	if h.m.AnnouncedBy() != 0 {
		t.Errorf("announced from %v", h.m.AnnouncedBy())
	}
	for range 20 {
		h.judge(0.8, 10)
		h.advance(50 * time.Millisecond)
	}
	if h.m.Open() == nil {
		t.Error("taken back")
	}
	h.drop()
	h.advance(time.Minute)
	h.want("prediction_expired ends 1 expired")
	// A forecast without quantiles announces nothing.
	h = onWiFi(t)
	if h.m.Announce(h.now, h.forecast(0.04, 1), &h.ev) {
		t.Error("announced of P = 0.04")
	}
}

// "After a prediction that did not come true, a new one within FlapGuard needs
// GuardThreshold." After a guarded one that fails too there is none until it ends:
// at most one Going_Down in 30 s on a flapping signal.
func TestFlapGuard(t *testing.T) {
	fail := func(h *machineTest, p float64) bool {
		h.t.Helper()
		h.judge(p, 1)
		if h.m.Open() == nil {
			h.want()
			return false
		}
		for range 12 {
			h.judge(0, 1)
			h.advance(50 * time.Millisecond)
		}
		if h.m.Open() != nil {
			h.t.Fatal("not taken back")
		}
		h.drop()
		return true
	}
	h := onWiFi(t)
	if !fail(h, 0.6) || fail(h, 0.89) || h.m.MayAnnounce(h.now, h.forecast(0.89, 1)) {
		t.Error("the guard does not hold")
	}
	if !fail(h, 0.95) {
		t.Error("a sure loss is not announced within the guard")
	}
	for range 25 {
		if fail(h, 1) || h.m.MayAnnounce(h.now, h.forecast(1, 1)) {
			t.Fatal("a third within the guard")
		}
		h.advance(time.Second)
	}
	h.advance(6 * time.Second)
	if !fail(h, 0.6) {
		t.Error("guarded for ever")
	}
	h.judge(0.95, 1) // comes true, and ends the guard
	h.give(device{v4: true, admin: true, down: true}.facts())
	h.give(device{v4: true}.facts())
	h.drop()
	if !fail(h, 0.6) {
		t.Error("guarded after a prediction that came true")
	}
}

// Neither a suspend nor a link that was really lost for a moment is a false alarm.
func TestNoGuardWithoutFalseAlarm(t *testing.T) {
	h := onWiFi(t)
	h.judge(0.9, 1)
	h.m.Resume(h.now, &h.ev)
	h.take()
	h.judge(0.6, 1)
	h.give(left(mihf.DownExplicitDisconnect, true))
	h.give(association(mihf.AssociationAuthorised, apA, "home"))
	h.drop()
	h.judge(0.6, 1)
	h.want("link_going_down 3.0 loss")
	h.advance(time.Minute)
	h.want("prediction_expired ends 3 expired")
}

// The expiry is renewed while the forecast stands, but not for ever.
func TestPredictionLivesAtMostMaxOpen(t *testing.T) {
	h := onWiFi(t)
	h.judge(0.9, 1)
	opened := h.now
	for h.m.Open() != nil {
		if h.now.Sub(opened) > time.Minute {
			t.Fatal("open for ever")
		}
		h.judge(0.9, 1)
		h.advance(50 * time.Millisecond)
	}
	if life := h.now.Sub(opened); life < 29*time.Second || life > 31*time.Second {
		t.Errorf("lived %v", life)
	}
	revisions := uint32(0)
	for i := range h.got {
		e := &h.got[i]
		if e.Kind == mihf.LinkGoingDown {
			if e.Prediction.Revision != revisions {
				t.Fatalf("revision %d after %d", e.Prediction.Revision, revisions)
			}
			revisions++
		}
	}
	if revisions > 30*4+1 {
		t.Errorf("%d revisions", revisions)
	}
	h.drop()
}

// Figures that are not numbers stay out of events, and a forecast that is no
// number announces nothing.
func TestNoNaN(t *testing.T) {
	h := onWiFi(t)
	f := h.forecast(1, 1)
	f.Trend.Slope = math.NaN()
	f.Trend.Samples = 9
	h.m.Forecast(h.now, f, &h.ev)
	h.take()
	h.want("link_going_down 1.0 loss")
	if h.m.Open().Trend != (mihf.Trend{}) {
		t.Errorf("%+v", h.m.Open().Trend)
	}
	for i := range f.Loss {
		f.Loss[i] = float32(math.NaN())
	}
	for range 12 {
		h.m.Forecast(h.now, f, &h.ev)
		h.advance(50 * time.Millisecond)
		h.take()
	}
	h.want("link_event_rollback ends 1 rollback")
	h.m.Forecast(h.now, f, &h.ev)
	h.take()
}
