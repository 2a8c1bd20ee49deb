package engine_test

import (
	"testing"
	"time"

	"mihf.dev/mihf"
)

// bulk is a flow on a link that loads it at a rate.
type bulk struct {
	h     *engineTest
	link  mihf.LinkID
	bps   float64
	bytes float64
	busy  time.Duration
}

// run lets it be read five times a second for a time.
func (b *bulk) run(d time.Duration) {
	const poll = 200 * time.Millisecond
	for range int(d / poll) {
		b.h.advance(poll)
		b.bytes += b.bps * poll.Seconds() / 8 * 1448 / 1500
		b.busy += poll
		b.h.give(b.link, &mihf.Observation{Kind: mihf.ObsFlow, Flow: &mihf.FlowReading{
			Endpoints: tuple("192.0.2.7", "203.0.113.1"), RTT: mihf.Some(60 * time.Millisecond), MinRTT: mihf.Some(40 * time.Millisecond),
			AckedBytes: mihf.Some(uint64(b.bytes)), DeliveredSegments: mihf.Some(uint64(b.bytes / 1448)), SentSegments: mihf.Some(uint64(b.bytes / 1448)),
			RetransSegments: mihf.Some[uint64](0), Busy: mihf.Some(b.busy), PathMTUBytes: mihf.Some[uint64](1500),
		}})
	}
}

func (h *engineTest) capacity() mihf.Characteristic {
	h.t.Helper()
	s, err := h.e.LinkStatus(h.now, wlan)
	if err != nil || s.LCI == nil {
		h.t.Fatalf("%+v, %v", s, err)
	}
	return s.LCI.CapacityUpBPS
}

// What flows say of a link is in its state, is told to its flows when it changes by 20 %, at most once a second, and ages.
func TestCharacteristicsAreMeasured(t *testing.T) {
	h := onWiFi(t)
	h.register(mihf.FlowSpec{ID: "f", Link: wlan})
	h.drop()
	b := &bulk{h: h, link: wlan, bps: 20e6}
	b.run(5 * time.Second)
	if c := h.capacity(); c.Source != mihf.SourceMeasured || c.Value < 19e6 || c.Value > 21e6 {
		t.Errorf("%+v", c)
	}
	if n := h.kinds()["characteristics"]; n < 1 || n > 3 {
		t.Errorf("told %d times in 5 s of the same load", n)
	}
	for range 10 { // it changes by more than 20 % every 2 s
		b.bps = 60e6 - b.bps
		b.run(2 * time.Second)
	}
	if n := h.kinds()["characteristics"]; n < 5 || n > 20 {
		t.Errorf("told %d times in 20 s", n)
	}
	h.advance(15 * time.Second)
	if c := h.capacity(); c.Source != mihf.SourceHistory {
		t.Errorf("after 15 s without a load: %+v", c)
	}
	if n := h.kinds()["characteristics"]; n < 1 || n > 2 { // perhaps of the last change, which waited for its second
		t.Errorf("told %d times that it is history", n)
	}
}

// At Path_Usable and in an Unfreeze the characteristics start from what was measured at that point of attachment before.
func TestCharacteristicsOfPoAs(t *testing.T) {
	h := onWiFi(t)
	(&bulk{h: h, link: wlan, bps: 20e6}).run(4 * time.Second)
	roam := func(to mihf.PoA) {
		h.give(wlan, left(mihf.DownExplicitDisconnect, true))
		h.give(wlan, association(mihf.AssociationAuthenticating, to, "home"))
		h.advance(100 * time.Millisecond)
		h.give(wlan, association(mihf.AssociationAuthorised, to, "home"))
		h.advance(time.Second)
	}
	roam(apB)
	if c := h.capacity(); c.Known() {
		t.Errorf("at the other access point: %+v", c)
	}
	h.register(mihf.FlowSpec{ID: "late", Link: wlan, LateFreeze: true})
	h.drop()
	roam(apA)
	if c := h.capacity(); c.Source != mihf.SourceHistory || c.Value < 19e6 {
		t.Errorf("back at the first: %+v", c)
	}
	thawed := false
	for i := range h.got {
		if x := &h.got[i].Hint; h.got[i].IsHint && x.Kind == mihf.HintUnfreeze {
			thawed = true
			if l := x.Unfreeze.LCI; l == nil || l.PoA != apA || l.MTUBytes.Value != 1500 {
				t.Errorf("thawed onto %+v", l)
			}
		}
	}
	if !thawed {
		t.Error("the flow was not thawed")
	}
	h.drop()
	info := h.e.Information(h.now, &mihf.InformationRequest{PoAs: []mihf.PoA{apA}})
	if len(info.PoAs) != 1 || info.PoAs[0].LCI == nil || info.PoAs[0].LCI.CapacityUpBPS.Source != mihf.SourceHistory {
		t.Errorf("%+v", info)
	}
}

// A flow's word for a link that is not there, or not attached, changes nothing.
func TestFlowsOfOtherLinks(t *testing.T) {
	h := onWiFi(t)
	(&bulk{h: h, link: wwan, bps: 20e6}).run(2 * time.Second)
	h.give(wlan, left(mihf.DownCarrier, false))
	h.advance(4 * time.Second)
	(&bulk{h: h, link: wlan, bps: 20e6}).run(2 * time.Second)
	h.drop()
	s, err := h.e.LinkStatus(h.now, wlan)
	if err != nil || (s.LCI != nil && s.LCI.CapacityUpBPS.Known()) {
		t.Errorf("%+v, %v", s.LCI, err)
	}
	if _, err := h.e.LinkStatus(h.now, wwan); err == nil {
		t.Error("a flow has made a link")
	}
}
