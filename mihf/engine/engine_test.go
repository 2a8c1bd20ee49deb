package engine_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/engine"
)

// "Nothing grows without bound: links, flows, sensors, explanations and what is kept for
// them are limited, and what is refused is counted."
func TestBounds(t *testing.T) {
	h := newEngine(t)
	id := func(i int) mihf.LinkID { return mihf.LinkID(fmt.Sprintf("wifi-%08x", i)) }
	for i := range engine.MaxLinks + 3 {
		h.give(id(i+1), radio("", -60))
	}
	h.give("wlan0", radio("", -60)) // no id
	for i := range engine.MaxSensors + 2 {
		h.give("", &mihf.Observation{Kind: mihf.ObsCondition, Condition: &mihf.SensorCondition{Sensor: fmt.Sprint(i)}})
	}
	links, flows := h.e.Counts()
	if r := h.e.Refused(); links != engine.MaxLinks || flows != 0 || r.Links != 4 || r.Sensors != 2 || len(h.e.Sensors()) != engine.MaxSensors {
		t.Errorf("%d links, %+v refused", links, r)
	}
	// Links that come and go leave nothing behind, however many.
	for i := range 3 * engine.MaxLinks {
		h.give(id(i+1), gone())
		h.give(id(i+5000), device{}.facts())
		h.give(id(i+5000), gone())
	}
	if n, _ := h.e.Counts(); n != 0 {
		t.Errorf("%d links left", n)
	}
	h.drop()
	// Of more predictions than are kept the newest can be explained.
	h = onWiFi(t, func(c *engine.Config) { c.Link.FlapGuard = 0 })
	for range 70 {
		h.foresee(wlan, 0.9, time.Second)
		h.give(wlan, radio(apA, -80))
		h.tell(wlan).silent = true
		h.advance(5 * time.Second)
	}
	if _, err := h.e.Explain(mihf.PredictionID{Boot: 7, N: 70}); err != nil {
		t.Error(err)
	}
	if _, err := h.e.Explain(mihf.PredictionID{Boot: 7, N: 6}); !errors.Is(err, mihf.ErrNotFound) {
		t.Error(err)
	}
	h.drop()
}

func TestExplain(t *testing.T) {
	h := onWiFi(t)
	h.register(mihf.FlowSpec{ID: "f", Link: wlan, RTT: 300 * time.Millisecond})
	for i := range 300 { // more than are kept
		h.foresee(wlan, 0.001, time.Second)
		h.give(wlan, radio(apA, -50-float64(i%10)))
		h.advance(100 * time.Millisecond)
	}
	h.foresee(wlan, 0.9, time.Second)
	h.give(wlan, radio(apA, -80))
	pr := mihf.PredictionID{Boot: 7, N: 1}
	open, err := h.e.Explain(pr)
	if err != nil || open.OutcomeAt != 0 || open.Link != wlan || len(open.Samples) != 256 || len(open.Forecasts) != 256 {
		t.Fatalf("%+v, %v", open, err)
	}
	for i := 1; i < len(open.Samples); i++ {
		if open.Samples[i].At <= open.Samples[i-1].At {
			t.Fatal("the samples are not in the order of time")
		}
	}
	if last := open.Samples[255]; last.At != h.now || !last.Values.Has(mihf.ParamRSSI) || last.PoA != apA {
		t.Errorf("%+v", last)
	}
	if open.Decisions[0].Rule != "P(loss within 2s) = 0.90, announced from 0.50" {
		t.Error(open.Decisions[0].Rule)
	}
	if d := open.Decisions[1]; d.Flow != "f" || !strings.HasPrefix(d.Rule, "freeze: lead 305ms (RTT 300ms stated) + 50ms to the next evaluation; P(loss before) 0.320 costs ") {
		t.Errorf("%+v", d)
	}
	if open.Announced != open.Prediction || open.Announced.Revision != 0 {
		t.Errorf("announced %+v, newest %+v", open.Announced, open.Prediction)
	}
	h.foresee(wlan, 1, 200*time.Millisecond)
	h.advance(500 * time.Millisecond)
	revised, err := h.e.Explain(pr)
	if err != nil || revised.Announced != open.Announced || revised.Prediction.Revision == 0 || revised.Prediction.P50 >= open.Announced.P50 {
		t.Errorf("announced %+v, newest %+v, error %v", revised.Announced, revised.Prediction, err)
	}
	h.foresee(wlan, 0, time.Second)
	h.advance(2 * time.Second)
	ended, err := h.e.Explain(pr)
	if err != nil || ended.Prediction.Outcome != mihf.OutcomeRollback || ended.Announced != open.Announced || ended.OutcomeAt != start.Add(31050*time.Millisecond) || len(ended.Samples) != 256 {
		t.Fatalf("%+v, %v", ended.Prediction, err)
	}
	// What was handed out stays as it is, although its room is used again.
	samples := append([]mihf.Sample(nil), ended.Samples...)
	for range 100 {
		h.give(wlan, radio(apA, -33))
	}
	for i := range samples {
		if samples[i] != ended.Samples[i] {
			t.Fatal("an explanation changed in the reader's hands")
		}
	}
	for _, id := range []mihf.PredictionID{{}, {Boot: 8, N: 1}} {
		if _, err := h.e.Explain(id); !errors.Is(err, mihf.ErrNotFound) {
			t.Errorf("%v: %v", id, err)
		}
	}
	h.drop()
}

func TestSnapshot(t *testing.T) {
	h := both(t)
	for _, id := range []mihf.FlowID{"c", "a", "b"} {
		h.register(mihf.FlowSpec{ID: id, Link: wlan})
	}
	h.unregister("c")
	h.foresee(wlan, 0.9, time.Second)
	h.give(wlan, radio(apA, -80))
	h.advance(200 * time.Millisecond)
	h.give("", &mihf.Observation{Kind: mihf.ObsCondition, Condition: &mihf.SensorCondition{Sensor: "rtnl", Condition: mihf.ConditionOK}})
	s := h.e.Snapshot(h.now, func(uint32) bool { return true })
	if s.Boot != 7 || s.Node != "node" || s.Sequence != h.e.Sequence() || s.At != h.now || len(s.Sensors) != 1 || len(s.Egress) != 1 {
		t.Errorf("%+v", s)
	}
	if len(s.Flows) != 2 || s.Flows[0].Spec.ID != "a" || s.Flows[1].Spec.ID != "b" {
		t.Errorf("%+v", s.Flows)
	}
	l := s.Links[0]
	p, open := l.Prediction.Get()
	if v, _ := l.Values.Get(mihf.ParamRSSI); l.Link != wlan || v != -80 || !open || p.P50 != 300*time.Millisecond || l.Forecast == nil || string(l.SSID) != "home" {
		t.Errorf("%+v", l)
	}
	if none := h.e.Snapshot(h.now, func(owner uint32) bool { return owner != 1000 }); len(none.Flows) != 0 {
		t.Error("flows of another owner")
	}
	if _, err := h.e.LinkStatus(h.now, "wifi-99999999"); !errors.Is(err, mihf.ErrNotFound) {
		t.Error(err)
	}
	if err := h.e.ConfigureThresholds(h.now, "wifi-99999999", mihf.Identity{}, nil); !errors.Is(err, mihf.ErrNotFound) {
		t.Error(err)
	}
	if err := h.e.ConfigureThresholds(h.now, wlan, mihf.Identity{}, []mihf.ThresholdConfig{{Parameter: 99}}); !errors.Is(err, mihf.ErrInvalid) {
		t.Error(err)
	}
	h.drop()
}

// Conditions, resyncs and routes are events when they change, and not otherwise.
func TestMachineEvents(t *testing.T) {
	h := newEngine(t)
	condition := func(c mihf.Condition) *mihf.Observation {
		return &mihf.Observation{Kind: mihf.ObsCondition, Condition: &mihf.SensorCondition{Sensor: "rtnl", Condition: c}}
	}
	for range 3 {
		h.give("", condition(mihf.ConditionOK))
		h.give("", egress(wlan))
	}
	h.give("", condition(mihf.ConditionDegraded))
	h.want("sensor_condition", `default_route_changed v6 false "" > "wifi-00000001"`, "sensor_condition")
	h.give("", &mihf.Observation{Kind: mihf.ObsResync, Sensor: "rtnl", Lost: true})
	if r := h.got[0].Event.Resync; r.Sensor != "rtnl" || !r.Lost {
		t.Errorf("%+v", r)
	}
	h.give("", &mihf.Observation{Kind: mihf.ObsResume, Gap: time.Hour})
	h.want("resync", "resumed_from_suspend 1h0m0s")
	for k := range mihf.ObservationKind(20) {
		if k != mihf.ObsResync && k != mihf.ObsResume {
			h.give("", &mihf.Observation{Kind: k}) // without link or payload
		}
	}
	h.want()
}

// The coming or going of an address that a flow uses is never minor.
func TestAddressInUseIsNotMinor(t *testing.T) {
	h := onWiFi(t)
	privacy := wifi4
	privacy.addrs = []string{"192.0.2.7/24", "2001:db8::aaaa/64"}
	temporary := privacy.facts()
	temporary.Facts.Addresses[1].Temporary = true
	for _, used := range []bool{false, true} {
		if used {
			h.register(mihf.FlowSpec{ID: "f", Tuples: []mihf.Endpoints{tuple("2001:db8::aaaa", "2001:db8:1::1")}})
		}
		h.drop()
		come := *temporary
		come.At = h.now
		h.give(wlan, &come)
		h.give(wlan, wifi4.facts())
		for i := range h.got {
			if a := h.got[i].Event.Address; a != nil && a.Minor == used {
				t.Errorf("in use %v: %s", used, line(&h.got[i]))
			}
		}
		h.drop()
	}
}

// An input that comes after a deadline does not overtake it.
func TestLateInput(t *testing.T) {
	h := onWiFi(t)
	h.give(wlan, left(mihf.DownExplicitDisconnect, true))
	h.now = h.now.Add(4 * time.Second) // the loop was held up
	h.check.suspends = true
	h.give(wlan, association(mihf.AssociationAuthorised, apB, "home"))
	h.want("wifi-00000001 path_lost v4 link_down", "wifi-00000001 link_down explicit_disconnect withheld 4s",
		"wifi-00000001 link_up", "wifi-00000001 path_usable v4")
}

// With nothing to do it never wants to be woken.
func TestSleeps(t *testing.T) {
	h := both(t)
	h.register(mihf.FlowSpec{ID: "f", Tuples: []mihf.Endpoints{{Remote: netip.MustParseAddrPort("203.0.113.1:443")}}})
	h.give(wlan, radio(apA, -50))
	h.advance(time.Minute)
	if next := h.e.Next(); next != 0 {
		t.Errorf("wants to be woken at %v", next)
	}
	h.drop()
}
