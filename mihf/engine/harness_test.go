package engine_test

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/queue"
)

const (
	wlan = mihf.LinkID("wifi-00000001")
	wwan = mihf.LinkID("wwan-00000002")
	apA  = mihf.PoA("02:00:00:00:00:0a")
	apB  = mihf.PoA("02:00:00:00:00:0b")
)

var start = mihf.Time(time.Hour)

// scripted is a predictor that says what it is told.
type scripted struct {
	silent         bool
	loss, handover float64       // P within 10 s
	within         time.Duration // when they come, evenly from the moment that it was told
	told           mihf.Time
}

func (s *scripted) Observe(mihf.Time, *mihf.Observation) {}

func (s *scripted) Forecast(now mihf.Time, f *mihf.Forecast) bool {
	*f = mihf.Forecast{At: now}
	if s.silent || s.within == 0 {
		return false
	}
	passed, within := now.Sub(s.told).Seconds(), s.within.Seconds()
	share := func(h float64) float64 { return max(0, min((h+passed)/within, 1)) }
	f.Loss.Set(func(h float64) float64 { return s.loss * share(h) })
	f.Handover.Set(func(h float64) float64 { return s.handover * share(h) })
	return true
}

// engineTest drives one engine. Each item that comes out is checked against what must be
// true of any history; one that a test did not want fails it.
type engineTest struct {
	t     failer
	e     *engine.Engine
	now   mihf.Time
	tells map[mihf.LinkID]*scripted
	check *check
	got   []queue.Item
}

func newEngine(t failer, change ...func(*engine.Config)) *engineTest {
	t.Helper()
	h := &engineTest{t: t, now: start, tells: map[mihf.LinkID]*scripted{}}
	cfg := engine.Defaults()
	cfg.Boot, cfg.Node = 7, "node"
	cfg.NewPredictor = func(l mihf.LinkID) engine.Predictor { return h.tell(l) }
	for _, f := range change {
		f(&cfg)
	}
	h.e = engine.New(cfg)
	h.check = newCheck(t, &cfg)
	return h
}

func (h *engineTest) tell(l mihf.LinkID) *scripted {
	if h.tells[l] == nil {
		h.tells[l] = &scripted{silent: true}
	}
	return h.tells[l]
}

// foresee makes the link's predictor say that a loss comes with probability p within d from
// now on; 0 for never.
func (h *engineTest) foresee(l mihf.LinkID, p float64, d time.Duration) {
	*h.tell(l) = scripted{loss: p, within: d, told: h.now}
}

func (h *engineTest) take() {
	h.t.Helper()
	items := h.e.Out()
	h.check.items(h.now, items)
	h.check.state(h.now, h.e)
	h.got = append(h.got, items...)
}

func (h *engineTest) give(link mihf.LinkID, o *mihf.Observation) {
	h.t.Helper()
	if o.At == 0 {
		o.At = h.now
	}
	o.Link = link
	h.e.Observe(h.now, o)
	h.take()
}

// advance lets time pass, stopping wherever the engine wants to be woken.
func (h *engineTest) advance(d time.Duration) {
	h.t.Helper()
	end := h.now.Add(d)
	for n := 0; ; n++ {
		next := h.e.Next()
		if next == 0 || next > end {
			break
		}
		if n > 100000 {
			h.t.Fatalf("the engine spins at %v", next)
		}
		h.now = max(h.now, next)
		h.e.Advance(h.now)
		h.take()
	}
	h.now = end
}

func (h *engineTest) register(spec mihf.FlowSpec) mihf.Registration {
	h.t.Helper()
	r, err := h.e.Register(h.now, &spec, 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	h.check.register(&spec)
	h.take()
	return r
}

func (h *engineTest) unregister(id mihf.FlowID) {
	h.t.Helper()
	h.advance(0) // as its owner does before every request
	h.e.Unregister(id)
	h.check.unregister(id)
	h.take()
}

func (h *engineTest) flow(id mihf.FlowID) mihf.FlowStatus {
	h.t.Helper()
	var s mihf.FlowStatus
	if !h.e.FlowStatus(h.now, id, &s) {
		h.t.Fatalf("%s is not registered", id)
	}
	return s
}

// want takes what came since, written as line does, and fails on anything else. Reports
// and address changes are left out: few tests are about them.
func (h *engineTest) want(items ...string) {
	h.t.Helper()
	var got []string
	for i := range h.got {
		if k := h.got[i].Event.Kind; k != mihf.LinkParametersReport && k != mihf.AddressChanged {
			got = append(got, line(&h.got[i]))
		}
	}
	h.got = h.got[:0]
	if strings.Join(got, "\n") != strings.Join(items, "\n") {
		h.t.Fatalf("at %v came\n\t%s\nwant\n\t%s", h.now.Sub(start), strings.Join(got, "\n\t"), strings.Join(items, "\n\t"))
	}
}

func (h *engineTest) drop() { h.got = h.got[:0] }

// kinds returns how many items of each kind came since, and forgets them.
func (h *engineTest) kinds() map[string]int {
	n := map[string]int{}
	for i := range h.got {
		if h.got[i].IsHint {
			n[h.got[i].Hint.Kind.String()]++
		} else {
			n[h.got[i].Event.Kind.String()]++
		}
	}
	h.drop()
	return n
}

// line is an item as people read it, with all that decides.
func line(it *queue.Item) string {
	if it.IsHint {
		return hintLine(&it.Hint)
	}
	return eventLine(&it.Event)
}

func eventLine(e *mihf.Event) string {
	s := e.Kind.String()
	if e.Link != "" {
		s = string(e.Link) + " " + s
	}
	switch e.Kind {
	case mihf.LinkDown:
		s += fmt.Sprintf(" %v withheld %v", e.Down.Reason, e.Down.Withheld)
	case mihf.LinkGoingDown:
		p := &e.Prediction
		s += fmt.Sprintf(" %v.%d %v p50 %v confidence %.2f expires in %v", p.ID, p.Revision, p.Cause, p.P50.Round(time.Millisecond), p.Confidence, p.ExpiresAt.Sub(e.At).Round(time.Millisecond))
	case mihf.LinkHandoverComplete, mihf.LinkHandoverImminent:
		s += handoverLine(e.Handover)
	case mihf.PathUsable, mihf.PathLost:
		s += map[bool]string{false: " v4", true: " v6"}[e.Path.IPv6]
		if e.Kind == mihf.PathLost {
			s += " " + e.Path.Reason.String()
		}
	case mihf.LinkParametersReport:
		s += fmt.Sprintf(" %v %.0f", e.Report.Parameter, e.Report.Value)
	case mihf.AddressChanged:
		s += fmt.Sprintf(" %v > %v minor %v", e.Address.Old.Prefix, e.Address.New.Prefix, e.Address.Minor)
	case mihf.DefaultRouteChanged:
		s += fmt.Sprintf(" v6 %v %q > %q", e.Egress.New.IPv6, string(e.Egress.Old.Link), string(e.Egress.New.Link))
	case mihf.LinkRemoved:
		s += " " + e.Removed.String()
	case mihf.ResumedFromSuspend:
		s += " " + e.Gap.String()
	default:
	}
	if p := e.Prediction; p.Outcome != mihf.OutcomeOpen {
		s += fmt.Sprintf(" ends %v %v", p.ID, p.Outcome)
	}
	return s
}

func handoverLine(h *mihf.Handover) string {
	s := fmt.Sprintf(" %s > %s", h.OldPoA, h.NewPoA)
	if h.OldLink != h.NewLink {
		s = fmt.Sprintf(" %s > %s", h.OldLink, h.NewLink)
	}
	if h.NetworkOrdered {
		s += " ordered"
	}
	if g, known := h.DataGap.Get(); known {
		s += fmt.Sprintf(" gap %v", g)
	}
	return s
}

func hintLine(x *mihf.Hint) string {
	s := fmt.Sprintf("%s: %v", x.Flow, x.Kind)
	switch x.Kind {
	case mihf.HintFreeze:
		s += fmt.Sprintf(" %v lease %v", x.Freeze.Reason, x.Freeze.Lease)
		if x.Freeze.P50 != 0 {
			s += fmt.Sprintf(" p50 %v", x.Freeze.P50.Round(time.Millisecond))
		}
	case mihf.HintUnfreeze:
		s += " " + x.Unfreeze.Cause.String()
		if x.Unfreeze.Recovery {
			s += " recovery"
		}
		if x.Unfreeze.LCI != nil {
			s += " onto " + string(x.Unfreeze.LCI.Link)
		}
	case mihf.HintPrepare:
		s += fmt.Sprintf(" %s in %v", x.Prepare.Target, x.Prepare.Deadline.Round(time.Millisecond))
	case mihf.HintSwitch:
		s += " " + string(x.Switch.Target)
	case mihf.HintAbandon:
		s += " " + x.Abandon.String()
	case mihf.HintCharacteristics:
		s += " " + string(x.Characteristics.Link)
	}
	if !x.Prediction.IsZero() {
		s += " " + x.Prediction.String()
	}
	return s
}

// device is the kernel's view of a link, from which tests derive variants.
type device struct {
	down, admin bool
	addrs       []string // "?" before one that is tentative
	routes      []string // "600", "v6:1024"
	name        string
}

func (d device) facts() *mihf.Observation {
	f := &mihf.LinkFacts{Name: "dev0", Index: 3, MTUBytes: 1500, AdminUp: !d.admin, Carrier: !d.down, Oper: mihf.OperUp}
	if d.down || d.admin {
		f.Oper = mihf.OperDown
	}
	if d.name != "" {
		f.Name = d.name
	}
	for _, s := range d.addrs {
		a, tentative := strings.CutPrefix(s, "?")
		p := netip.MustParsePrefix(a)
		f.Addresses = append(f.Addresses, mihf.Address{Prefix: p, Tentative: tentative, LinkLocal: p.Addr().IsLinkLocalUnicast()})
	}
	for _, s := range d.routes {
		metric, v6 := strings.CutPrefix(s, "v6:")
		r := mihf.Route{IPv6: v6}
		if _, err := fmt.Sscan(metric, &r.Metric); err != nil {
			panic(err)
		}
		f.Defaults = append(f.Defaults, r)
	}
	return &mihf.Observation{Kind: mihf.ObsLink, Facts: f}
}

var (
	wifi4 = device{addrs: []string{"192.0.2.7/24"}, routes: []string{"600"}}
	cell4 = device{addrs: []string{"198.51.100.9/24"}, routes: []string{"700"}}
)

func association(s mihf.AssociationState, poa mihf.PoA, ssid string) *mihf.Observation {
	a := &mihf.Association{State: s, PoA: poa}
	if ssid != "" {
		a.SSID = []byte(ssid)
	}
	return &mihf.Observation{Kind: mihf.ObsAssociation, Association: a}
}

func left(cause mihf.DownReason, local bool) *mihf.Observation {
	return &mihf.Observation{Kind: mihf.ObsAssociation, Association: &mihf.Association{State: mihf.AssociationDisconnected, Cause: cause, Local: local}}
}

func radio(poa mihf.PoA, rssi float64) *mihf.Observation {
	o := &mihf.Observation{Kind: mihf.ObsRadio, PoA: poa}
	o.Values.Set(mihf.ParamRSSI, rssi)
	return o
}

func egress(l mihf.LinkID) *mihf.Observation {
	return &mihf.Observation{Kind: mihf.ObsEgress, Egress: &mihf.Egress{Link: l}}
}

func peer(addr string, l mihf.LinkID) *mihf.Observation {
	return &mihf.Observation{Kind: mihf.ObsPeer, Peer: &mihf.PeerRoute{Peer: netip.MustParseAddr(addr), Link: l}}
}

func gone() *mihf.Observation {
	return &mihf.Observation{Kind: mihf.ObsLinkGone, Gone: mihf.DownRemoved}
}

func tuple(local, remote string) mihf.Endpoints {
	e := mihf.Endpoints{Protocol: 17}
	if local != "" {
		e.Local = netip.AddrPortFrom(netip.MustParseAddr(local), 40000)
	}
	if remote != "" {
		e.Remote = netip.AddrPortFrom(netip.MustParseAddr(remote), 443)
	}
	return e
}

// onWiFi is an engine whose Wi-Fi link is up at access point A of "home".
func onWiFi(t failer, change ...func(*engine.Config)) *engineTest {
	t.Helper()
	h := newEngine(t, change...)
	h.give(wlan, association(mihf.AssociationAuthorised, apA, "home"))
	h.give(wlan, wifi4.facts())
	h.drop()
	return h
}
