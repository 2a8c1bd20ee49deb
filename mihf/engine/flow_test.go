package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/engine"
)

const quick = mihf.FlowID("quic")

// both is a Wi-Fi link that is the kernel's choice, and a cellular one beside it.
func both(t failer) *engineTest {
	t.Helper()
	h := onWiFi(t)
	h.give(wwan, cell4.facts())
	h.give("", egress(wlan))
	h.drop()
	return h
}

// "A Freeze that follows from a forecast names its prediction, and has a higher sequence
// than the Link_Going_Down that announced it", also where the flow's rule fires first.
func TestFreezeNamesItsPrediction(t *testing.T) {
	h := onWiFi(t)
	h.register(mihf.FlowSpec{ID: "far", Link: wlan, RTT: 900 * time.Millisecond, CostMiss: 20 * time.Second, CostNeedless: 200 * time.Millisecond})
	h.drop()
	h.foresee(wlan, 0.4, time.Second) // below the link's threshold, but this flow cannot wait
	h.give(wlan, radio(apA, -80))
	h.want(
		"wifi-00000001 link_going_down 00000007-1.0 loss p50 500ms confidence 0.36 expires in 2s",
		"far: freeze predicted lease 3s p50 500ms 00000007-1",
	)
	x, err := h.e.Explain(mihf.PredictionID{Boot: 7, N: 1})
	if err != nil || len(x.Decisions) != 2 || x.Decisions[1].Flow != "far" || x.Decisions[0].Rule != "P(loss within 2s) = 0.40, announced for the first flow whose rule fired" {
		t.Errorf("%+v, %v", x, err)
	}
}

// Certain beats forecast: a late freeze comes with the disconnect, before Link_Down; flows
// that did not ask for it get nothing, and all go on when their path is usable.
func TestLateFreeze(t *testing.T) {
	h := onWiFi(t)
	h.register(mihf.FlowSpec{ID: "dccp", Link: wlan, LateFreeze: true})
	h.register(mihf.FlowSpec{ID: "tcp", Link: wlan})
	h.drop()
	h.give(wlan, left(mihf.DownBeaconLoss, false))
	h.want("dccp: freeze link_down lease 3s", "wifi-00000001 path_lost v4 link_down")
	h.advance(50 * time.Millisecond)
	h.want("wifi-00000001 link_down beacon_loss withheld 30ms")
	h.give(wlan, association(mihf.AssociationAuthorised, apA, "home"))
	h.want("wifi-00000001 link_up", "wifi-00000001 path_usable v4", "dccp: unfreeze path_usable onto wifi-00000001")
}

// A predictor that goes on to foresee a loss which has come freezes nobody any more: for
// those that were not frozen in time a late freeze does harm.
func TestNoPredictedFreezeAfterTheLoss(t *testing.T) {
	h := onWiFi(t)
	h.foresee(wlan, 1, 20*time.Second)
	h.give(wlan, radio(apA, -80))
	h.foresee(wlan, 1, 2*time.Second)
	h.give(wlan, radio(apA, -85)) // announced, and nobody frozen yet
	h.give(wlan, left(mihf.DownExplicitDisconnect, true))
	h.register(mihf.FlowSpec{ID: "tcp", Link: wlan, RTT: 500 * time.Millisecond})
	h.foresee(wlan, 1, time.Millisecond)
	h.give(wlan, radio(apA, -90))
	h.advance(2 * time.Second)
	if n := h.kinds(); n["freeze"] != 0 || n["link_going_down"] == 0 {
		t.Errorf("%v", n)
	}
}

// A flow that registers on a link which was lost wants its late freeze too; on one that
// was never up there is nothing to lose.
func TestRegisterWhileDown(t *testing.T) {
	h := onWiFi(t)
	h.give(wlan, left(mihf.DownExplicitDisconnect, true))
	h.drop()
	h.register(mihf.FlowSpec{ID: "late", Link: wlan, LateFreeze: true})
	h.register(mihf.FlowSpec{ID: "tcp", Link: wlan})
	h.want("late: characteristics wifi-00000001", "late: freeze link_down lease 3s", "tcp: characteristics wifi-00000001")
	h.give(wlan, association(mihf.AssociationAuthorised, apA, "home"))
	h.want("wifi-00000001 path_usable v4", "late: unfreeze path_usable onto wifi-00000001")
	h.give(wwan, device{down: true}.facts())
	h.register(mihf.FlowSpec{ID: "early", Link: wwan, LateFreeze: true})
	h.want("early: characteristics wwan-00000002")
}

// A flow may be registered before its link exists.
func TestRegisterBeforeTheLink(t *testing.T) {
	h := newEngine(t)
	h.register(mihf.FlowSpec{ID: "named", Link: wlan, LateFreeze: true, Continuity: mihf.ContinuityRebinds})
	h.register(mihf.FlowSpec{ID: "addressed", Tuples: []mihf.Endpoints{tuple("192.0.2.7", "203.0.113.1")}, LateFreeze: true})
	h.give(wwan, cell4.facts())
	h.give("", egress(wwan))
	if h.flow("named").Link != wlan {
		t.Error("sent away from a link that the sensors have not told of yet")
	}
	h.give(wlan, wifi4.facts())
	if h.flow("addressed").Link != wlan {
		t.Error("not where its address is")
	}
	h.drop()
	h.give(wlan, device{down: true, addrs: wifi4.addrs, routes: wifi4.routes}.facts())
	if n := h.kinds(); n["freeze"] != 2 || n["switch"] != 1 {
		t.Errorf("%v", n)
	}
}

// An id that comes back goes on above its epochs, and its transport's tuples are its own.
func TestRegisterAgain(t *testing.T) {
	h := onWiFi(t)
	spec := mihf.FlowSpec{ID: "f", Link: wlan, LateFreeze: true, Tuples: []mihf.Endpoints{tuple("192.0.2.7", "203.0.113.1")}}
	h.register(spec)
	if _, err := h.e.Register(h.now, &spec, 1000); !errors.Is(err, mihf.ErrExists) {
		t.Error(err)
	}
	h.unregister("f")
	h.register(spec) // the check sees to it that epochs rise
	spec.Tuples[0] = mihf.Endpoints{}
	if h.flow("f").Spec.Tuples[0] != tuple("192.0.2.7", "203.0.113.1") {
		t.Error("changed from outside")
	}
	if _, err := h.e.Register(h.now, &mihf.FlowSpec{ID: "bad"}, 1000); !errors.Is(err, mihf.ErrInvalid) {
		t.Error(err)
	}
	h.drop()
}

func TestUpdate(t *testing.T) {
	h := both(t)
	h.register(mihf.FlowSpec{ID: "f", Link: wlan, RTT: 50 * time.Millisecond})
	tuples := []mihf.Endpoints{tuple("198.51.100.9", "203.0.113.1")}
	if err := h.e.Update(h.now, &mihf.FlowUpdate{Flow: "f", Tuples: tuples, Link: mihf.Some(mihf.LinkID("")), RTT: mihf.Some(90 * time.Millisecond)}); err != nil {
		t.Fatal(err)
	}
	tuples[0] = mihf.Endpoints{}
	h.take()
	if s := h.flow("f"); s.Link != wwan || s.Lead != 95*time.Millisecond || s.Spec.Tuples[0] != tuple("198.51.100.9", "203.0.113.1") || h.e.Flow("f").Named != "" {
		t.Errorf("%+v", s)
	}
	for u, want := range map[*mihf.FlowUpdate]error{
		{Flow: "x"}:                                                   mihf.ErrNotFound,
		{Flow: "f", Tuples: []mihf.Endpoints{}}:                       mihf.ErrInvalid,
		{Flow: "f", RTT: mihf.Some(-time.Second)}:                     mihf.ErrInvalid,
		{Flow: "f", Link: mihf.Some(mihf.LinkID("nonsense"))}:         mihf.ErrInvalid,
		{Flow: "f", Tuples: make([]mihf.Endpoints, mihf.MaxTuples+1)}: mihf.ErrInvalid,
	} {
		if err := h.e.Update(h.now, u); !errors.Is(err, want) {
			t.Errorf("%+v: %v", u, err)
		}
	}
	if s := h.flow("f"); s.Lead != 95*time.Millisecond || len(s.Spec.Tuples) != 1 {
		t.Errorf("a refused update changed it to %+v", s)
	}
	h.drop()
}

// A flow that is frozen and then says itself that it is on another link thaws there.
func TestMovesWhileFrozen(t *testing.T) {
	h := both(t)
	h.register(mihf.FlowSpec{ID: "f", Tuples: []mihf.Endpoints{tuple("192.0.2.7", "203.0.113.1")}, RTT: 500 * time.Millisecond})
	h.drop()
	h.foresee(wlan, 1, 500*time.Millisecond)
	h.give(wlan, radio(apA, -85))
	if !h.flow("f").Frozen {
		t.Fatal("not frozen")
	}
	h.drop()
	if err := h.e.Update(h.now, &mihf.FlowUpdate{Flow: "f", Tuples: []mihf.Endpoints{tuple("198.51.100.9", "203.0.113.1")}}); err != nil {
		t.Fatal(err)
	}
	h.take()
	h.want("f: characteristics wwan-00000002", "f: unfreeze path_usable onto wwan-00000002 00000007-1")
	h.tell(wlan).silent = true
	h.advance(time.Minute)
	h.want("wifi-00000001 prediction_expired ends 00000007-1 expired")
}

// A same-address flow follows its address to another link (a bridge), frozen or not.
func TestAddressMoves(t *testing.T) {
	h := both(t)
	h.register(mihf.FlowSpec{ID: "f", Tuples: []mihf.Endpoints{tuple("192.0.2.7", "203.0.113.1")}, LateFreeze: true})
	h.drop()
	h.give(wlan, device{down: true}.facts())
	h.give(wlan, left(mihf.DownExplicitDisconnect, true))
	h.advance(time.Second)
	if s := h.flow("f"); !s.Frozen || s.Link != wlan {
		t.Errorf("%+v", s)
	}
	h.drop()
	h.give(wwan, device{addrs: []string{"198.51.100.9/24", "?192.0.2.7/24"}, routes: []string{"700"}}.facts())
	h.want()
	h.give(wwan, device{addrs: []string{"198.51.100.9/24", "192.0.2.7/24"}, routes: []string{"700"}}.facts())
	h.want("f: characteristics wwan-00000002", "f: unfreeze path_usable onto wwan-00000002")
	h.advance(10 * time.Second)
	h.drop()
}

// The address of a flow that needs it comes late, after another: that is no reason to give
// the flow up. Only where it stays away it is.
func TestAddressReturnsLate(t *testing.T) {
	for _, late := range []time.Duration{2900 * time.Millisecond, 3100 * time.Millisecond} {
		h := onWiFi(t)
		h.register(mihf.FlowSpec{ID: "f", Tuples: []mihf.Endpoints{tuple("192.0.2.7", "203.0.113.1")}, LateFreeze: true})
		h.give(wlan, left(mihf.DownBeaconLoss, false))
		h.give(wlan, device{down: true}.facts())
		h.advance(2 * time.Second)
		h.give(wlan, device{}.facts())
		h.give(wlan, association(mihf.AssociationAuthorised, apB, "home"))
		h.advance(time.Second)
		if h.flow("f").Link != wlan || !h.flow("f").Frozen {
			t.Fatalf("%+v", h.flow("f"))
		}
		h.drop()
		h.give(wlan, device{addrs: []string{"192.0.2.99/24"}, routes: []string{"600"}}.facts())
		h.want("wifi-00000001 path_usable v4")
		h.advance(late)
		h.give(wlan, device{addrs: []string{"192.0.2.99/24", "192.0.2.7/24"}, routes: []string{"600"}}.facts())
		if n := h.kinds(); late < 3*time.Second && (n["unfreeze"] != 1 || n["abandon"] != 0) || late > 3*time.Second && n["abandon"] != 1 {
			t.Errorf("after %v: %v", late, n)
		}
		if h.flow("f").Frozen {
			t.Error("still frozen")
		}
	}
}

// A flow whose address is on no link yet may be placed by a guess; that is no home that
// could come back without it.
func TestGuessedPlaceIsNoHome(t *testing.T) {
	h := newEngine(t)
	h.give(wwan, cell4.facts())
	h.give("", egress(wwan))
	h.register(mihf.FlowSpec{ID: "f", Tuples: []mihf.Endpoints{tuple("192.0.2.7", "203.0.113.1")}, LateFreeze: true})
	h.advance(time.Minute)
	h.give(wwan, cell4.facts())
	if n := h.kinds(); n["abandon"] != 0 || h.flow("f").Link != wwan {
		t.Errorf("%v", n)
	}
	h.give(wlan, wifi4.facts())
	if h.flow("f").Link != wlan {
		t.Error("not where its address is")
	}
	h.drop()
}

// An address that is on the link and still tentative is not gone.
func TestTentativeAddressIsNotGone(t *testing.T) {
	h := newEngine(t)
	v6 := device{addrs: []string{"2001:db8::7/64"}, routes: []string{"v6:1024"}}
	h.give(wlan, v6.facts())
	h.register(mihf.FlowSpec{ID: "f", Tuples: []mihf.Endpoints{tuple("2001:db8::7", "2001:db8:1::1")}, LateFreeze: true})
	h.give(wlan, device{down: true}.facts())
	h.give(wlan, device{addrs: []string{"2001:db8::8/64", "?2001:db8::7/64"}, routes: []string{"v6:1024"}}.facts())
	h.advance(10 * time.Second)
	h.drop()
	if !h.flow("f").Frozen {
		t.Fatal("gone")
	}
	h.give(wlan, v6.facts())
	h.want("f: unfreeze path_usable onto wifi-00000001")
}

// A flow between link-local addresses needs no default route, and its address is known.
func TestLinkLocalFlow(t *testing.T) {
	h := newEngine(t)
	local := device{addrs: []string{"fe80::7/64"}}
	h.give(wlan, local.facts())
	h.register(mihf.FlowSpec{ID: "f", Tuples: []mihf.Endpoints{tuple("fe80::7%wlan0", "fe80::1%wlan0")}, LateFreeze: true})
	h.drop()
	h.give(wlan, device{down: true, addrs: local.addrs}.facts())
	h.give(wlan, local.facts())
	h.want("f: freeze link_down lease 3s", "wifi-00000001 link_down carrier withheld 0s",
		"wifi-00000001 link_up", "f: unfreeze path_usable onto wifi-00000001")
	h.give(wlan, device{addrs: []string{"fe80::7/64", "2001:db8::8/64"}, routes: []string{"v6:1"}}.facts())
	h.advance(time.Minute)
	if n := h.kinds(); n["abandon"] != 0 {
		t.Errorf("%v", n)
	}
}

// The path of a flow whose peer's route is watched is usable only when the kernel reaches
// the peer over it; of several peers one is enough.
func TestUsableByPeerRoute(t *testing.T) {
	h := both(t)
	h.register(mihf.FlowSpec{ID: "f", LateFreeze: true, Tuples: []mihf.Endpoints{tuple("192.0.2.7", "203.0.113.1"), tuple("192.0.2.7", "203.0.113.2")}})
	h.give("", peer("203.0.113.1", wlan))
	h.give(wlan, device{down: true, addrs: wifi4.addrs}.facts())
	h.give("", peer("203.0.113.1", wwan))
	h.give("", peer("203.0.113.2", ""))
	h.drop()
	h.give(wlan, wifi4.facts())
	h.want("wifi-00000001 path_usable v4") // its way is elsewhere yet
	h.give("", peer("203.0.113.2", wlan))
	h.want("f: unfreeze path_usable onto wifi-00000001")
	if peers, changed := h.e.Peers(); len(peers) != 2 || !changed {
		t.Errorf("%v, %v", peers, changed)
	}
	if _, changed := h.e.Peers(); changed {
		t.Error("changed without a change")
	}
}

// A link that is removed takes its address with it; a flow that rebinds waits, and both are
// known again when the device is plugged in again.
func TestReplug(t *testing.T) {
	h := onWiFi(t)
	h.register(mihf.FlowSpec{ID: "quic", Link: wlan, Continuity: mihf.ContinuityRebinds, LateFreeze: true})
	h.register(mihf.FlowSpec{ID: "tcp", Link: wlan, LateFreeze: true})
	h.drop()
	h.give(wlan, gone())
	h.want("quic: freeze link_down lease 3s", "wifi-00000001 path_lost v4 removed", "wifi-00000001 link_down removed withheld 0s",
		"wifi-00000001 link_removed removed", "tcp: abandon link_removed")
	h.check.snapshot(h.now, h.e)
	// A late word of the radio does not bring it back.
	h.give(wlan, radio(apA, -50))
	h.give(wlan, left(mihf.DownUnknown, false))
	h.give(wlan, gone())
	h.want()
	if n, _ := h.e.Counts(); n != 0 {
		t.Error("a removed link is still there")
	}
	h.advance(time.Second)
	h.give(wlan, wifi4.facts())
	h.want("wifi-00000001 link_up", "wifi-00000001 path_usable v4", "quic: unfreeze path_usable onto wifi-00000001",
		"quic: characteristics wifi-00000001", "tcp: characteristics wifi-00000001")
	s, err := h.e.LinkStatus(h.now, wlan)
	if err != nil || !s.HoldDown {
		t.Errorf("%+v, %v", s, err)
	}
	// Also where the link was down before it was removed.
	h.give(wlan, device{admin: true}.facts())
	h.give(wlan, gone())
	if n := h.kinds(); n["abandon"] != 1 || n["link_down"] != 1 {
		t.Errorf("%v", n)
	}
}

// None of continuity: a handover is the end, a link that only comes back is not.
func TestContinuityNone(t *testing.T) {
	h := onWiFi(t)
	h.register(mihf.FlowSpec{ID: "f", Link: wlan, Continuity: mihf.ContinuityNone, LateFreeze: true})
	h.drop()
	h.give(wlan, radio(apB, -50))
	h.want("wifi-00000001 link_handover_complete 02:00:00:00:00:0a > 02:00:00:00:00:0b gap 0s", "f: abandon no_continuity", "f: characteristics wifi-00000001")
}

// Everything is thawed to recovery when the broker goes.
func TestShutdown(t *testing.T) {
	h := onWiFi(t)
	h.register(mihf.FlowSpec{ID: "f", Link: wlan, LateFreeze: true})
	h.give(wlan, left(mihf.DownBeaconLoss, false))
	h.drop()
	h.e.Shutdown(h.now)
	h.take()
	h.want("f: unfreeze operator recovery")
}

func flowReading(t *testing.T, local, remote string, rtt, receive time.Duration) *mihf.Observation {
	t.Helper()
	r := &mihf.FlowReading{Endpoints: tuple(local, remote)}
	if rtt > 0 {
		r.RTT = mihf.Some(rtt)
	}
	if receive > 0 {
		r.ReceiveRTT = mihf.Some(receive)
	}
	return &mihf.Observation{Kind: mihf.ObsFlow, Flow: r}
}

// The RTT that the kernel measures moves the deadline of the flow that has the tuple, and of no
// other; the longer one of both sides' counts. The explanation names it.
func TestMeasuredRTTMovesTheDeadline(t *testing.T) {
	h := onWiFi(t)
	const cost = 10 * time.Millisecond // of a needless freeze
	h.register(mihf.FlowSpec{ID: "tcp", CostNeedless: cost, Tuples: []mihf.Endpoints{tuple("192.0.2.7", "203.0.113.1")}})
	h.register(mihf.FlowSpec{ID: "other", CostNeedless: cost, Tuples: []mihf.Endpoints{tuple("192.0.2.7", "203.0.113.2")}})
	h.give(wlan, flowReading(t, "192.0.2.7", "203.0.113.1", 40*time.Millisecond, 700*time.Millisecond))
	h.give(wlan, &mihf.Observation{Kind: mihf.ObsFlow})
	h.drop()
	if s := h.flow("tcp"); s.RTT != 700*time.Millisecond || s.RTTSource != mihf.RTTMeasured {
		t.Errorf("RTT %v %v", s.RTT, s.RTTSource)
	}
	if s := h.flow("other"); s.RTTSource != mihf.RTTAssumed {
		t.Errorf("the other flow has an RTT of %v, %v", s.RTT, s.RTTSource)
	}
	h.foresee(wlan, 1, 10*time.Second) // at last chance for the one, too early for the other
	h.give(wlan, radio(apA, -80))
	h.want(
		"wifi-00000001 link_going_down 00000007-1.0 loss p50 5s confidence 0.90 expires in 10s",
		"tcp: freeze predicted lease 3s p50 5s 00000007-1",
	)
	x, err := h.e.Explain(mihf.PredictionID{Boot: 7, N: 1})
	if err != nil || len(x.Decisions) != 2 || !strings.Contains(x.Decisions[1].Rule, "lead 705ms (RTT 700ms measured)") {
		t.Errorf("%+v, %v", x, err)
	}
}

// Sensors are told the tuples with a peer, so many and no more.
func TestTuples(t *testing.T) {
	h := onWiFi(t)
	h.register(mihf.FlowSpec{ID: "named", Link: wlan})
	h.register(mihf.FlowSpec{ID: "half", Link: wlan, Tuples: []mihf.Endpoints{tuple("192.0.2.7", "")}})
	h.register(mihf.FlowSpec{ID: "tcp", Tuples: []mihf.Endpoints{tuple("192.0.2.7", "203.0.113.1"), tuple("", "203.0.113.2")}})
	if got := h.e.Tuples(); len(got) != 2 || got[0] != tuple("192.0.2.7", "203.0.113.1") {
		t.Errorf("%v", got)
	}
	for i := range engine.MaxTuples {
		h.register(mihf.FlowSpec{ID: mihf.FlowID(fmt.Sprint(i)), Link: wlan, Tuples: []mihf.Endpoints{tuple("", "203.0.113.3")}})
	}
	if n := len(h.e.Tuples()); n != engine.MaxTuples {
		t.Errorf("%d tuples", n)
	}
	h.drop()
}
