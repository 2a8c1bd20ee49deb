package linkstate_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/linkstate"
)

const (
	wlan = mihf.LinkID("wifi-00000001")
	apA  = mihf.PoA("02:00:00:00:00:0a")
	apB  = mihf.PoA("02:00:00:00:00:0b")
)

// machineTest drives one machine. Every event that a test did not want fails it.
type machineTest struct {
	t   testing.TB
	m   *linkstate.Machine
	cfg linkstate.Config
	ids *linkstate.IDs
	now mihf.Time
	ev  linkstate.Events
	got []mihf.Event
}

func newMachine(t testing.TB) *machineTest {
	t.Helper()
	h := &machineTest{t: t, cfg: linkstate.Defaults(), ids: &linkstate.IDs{Boot: 7}, now: mihf.Time(time.Hour)}
	h.m = linkstate.New(h.cfg, wlan, h.ids)
	t.Cleanup(h.quiet)
	return h
}

func (h *machineTest) take() {
	h.got = append(h.got, h.ev.List...)
	h.ev.List = h.ev.List[:0]
}

// give observes now.
func (h *machineTest) give(o *mihf.Observation) {
	h.t.Helper()
	if o.At == 0 {
		o.At = h.now
	}
	o.Link = wlan
	h.m.Observe(h.now, o, &h.ev)
	h.take()
}

// advance lets time pass, stopping wherever the machine wants to be woken.
func (h *machineTest) advance(d time.Duration) {
	h.t.Helper()
	end := h.now.Add(d)
	for n := 0; ; n++ {
		next := h.m.Next()
		if next == 0 || next > end {
			break
		}
		if n > 10000 {
			h.t.Fatalf("the machine spins at %v", next)
		}
		h.now = max(h.now, next)
		h.m.Advance(h.now, &h.ev)
		h.take()
	}
	h.now = end
}

// forecast gives a loss with probability p within 10 s, coming evenly within that many
// seconds, and a handover likewise.
func (h *machineTest) forecast(loss, within float64, handover ...float64) *mihf.Forecast {
	f := &mihf.Forecast{At: h.now}
	f.Loss.Set(func(s float64) float64 { return loss * min(s/within, 1) })
	if len(handover) > 0 {
		f.Handover.Set(func(s float64) float64 { return handover[0] * min(s/within, 1) })
	}
	return f
}

func (h *machineTest) judge(loss, within float64, handover ...float64) {
	h.t.Helper()
	h.m.Forecast(h.now, h.forecast(loss, within, handover...), &h.ev)
	h.take()
}

// want takes the events that came since, written as show does, and fails on any other.
func (h *machineTest) want(events ...string) {
	h.t.Helper()
	var got []string
	for i := range h.got {
		got = append(got, show(&h.got[i]))
	}
	h.got = h.got[:0]
	if strings.Join(got, "\n") != strings.Join(events, "\n") {
		h.t.Fatalf("at %v came\n\t%s\nwant\n\t%s", h.now, strings.Join(got, "\n\t"), strings.Join(events, "\n\t"))
	}
}

func (h *machineTest) quiet() { h.want() }

// drop forgets the events that came, where a test is about later ones.
func (h *machineTest) drop() { h.got = h.got[:0] }

// show is an event in a line: its kind and what a test is likely to care for.
func show(e *mihf.Event) string {
	s := e.Kind.String()
	switch e.Kind {
	case mihf.LinkDown:
		s += fmt.Sprintf(" %v withheld %v", e.Down.Reason, e.Down.Withheld)
	case mihf.LinkGoingDown:
		s += fmt.Sprintf(" %v.%d %v", e.Prediction.ID.N, e.Prediction.Revision, e.Prediction.Cause)
	case mihf.LinkHandoverComplete, mihf.LinkHandoverImminent:
		s += fmt.Sprintf(" %s>%s", last(e.Handover.OldPoA), last(e.Handover.NewPoA))
		if e.Handover.NetworkOrdered {
			s += " ordered"
		}
		if g, known := e.Handover.DataGap.Get(); known {
			s += fmt.Sprintf(" gap %v", g)
		}
	case mihf.PathUsable, mihf.PathLost:
		s += map[bool]string{false: " v4", true: " v6"}[e.Path.IPv6]
		if e.Kind == mihf.PathLost {
			s += " " + e.Path.Reason.String()
		}
	case mihf.LinkParametersReport:
		s += fmt.Sprintf(" %v %v", e.Report.Parameter, e.Report.Value)
		if th, ok := e.Report.Threshold.Get(); ok {
			s += fmt.Sprintf(" %v %v", th.Direction, th.Value)
		}
		if e.Report.Periodic {
			s += " periodic"
		}
	case mihf.AddressChanged:
		s += fmt.Sprintf(" %v>%v", e.Address.Old.Prefix, e.Address.New.Prefix)
		if e.Address.Minor {
			s += " minor"
		}
	case mihf.LinkRenamed:
		s += " " + e.Rename.Old + ">" + e.Rename.New
	case mihf.LinkRemoved:
		s += " " + e.Removed.String()
	default:
	}
	if p := e.Prediction; p.Outcome != mihf.OutcomeOpen {
		s += fmt.Sprintf(" ends %d %v", p.ID.N, p.Outcome)
	}
	return s
}

func last(p mihf.PoA) string {
	if p == "" {
		return "-"
	}
	return string(p[len(p)-1:])
}

// device is the kernel's view of the link, from which tests derive variants.
type device struct {
	name        string
	down, admin bool
	v4, v6      bool // with default routes
	tentative   bool // the v6 address
	noRoute     bool
	extra       []mihf.Address
}

func (d device) facts() *mihf.Observation {
	f := &mihf.LinkFacts{Name: "wlan0", Index: 3, MTUBytes: 1500, AdminUp: !d.admin, Carrier: !d.down, Oper: mihf.OperUp}
	if d.name != "" {
		f.Name = d.name
	}
	if d.down {
		f.Oper = mihf.OperDown
	}
	if d.v4 {
		f.Addresses = append(f.Addresses, mihf.Address{Prefix: netip.MustParsePrefix("192.0.2.7/24")})
	}
	if d.v6 {
		f.Addresses = append(f.Addresses, mihf.Address{Prefix: netip.MustParsePrefix("2001:db8::7/64"), Tentative: d.tentative})
	}
	f.Addresses = append(f.Addresses, d.extra...)
	if d.v4 && !d.noRoute {
		f.Defaults = append(f.Defaults, mihf.Route{Gateway: netip.MustParseAddr("192.0.2.1"), Metric: 600})
	}
	if d.v6 && !d.noRoute {
		f.Defaults = append(f.Defaults, mihf.Route{IPv6: true, Gateway: netip.MustParseAddr("fe80::1"), Metric: 600})
	}
	return &mihf.Observation{Kind: mihf.ObsLink, Facts: f}
}

func association(s mihf.AssociationState, poa mihf.PoA, ssid string) *mihf.Observation {
	a := &mihf.Association{State: s, PoA: poa}
	if ssid != "" {
		a.SSID = []byte(ssid)
	}
	return &mihf.Observation{Kind: mihf.ObsAssociation, Association: a}
}

// left is a disconnection: local says that our own side ended it.
func left(cause mihf.DownReason, local bool) *mihf.Observation {
	return &mihf.Observation{Kind: mihf.ObsAssociation, Association: &mihf.Association{
		State: mihf.AssociationDisconnected, Cause: cause, Code: 3, Local: local,
	}}
}

func reading(p mihf.Parameter, v float64) *mihf.Observation {
	o := &mihf.Observation{Kind: mihf.ObsRadio}
	o.Values.Set(p, v)
	return o
}

func radio(poa mihf.PoA, rssi float64) *mihf.Observation {
	o := reading(mihf.ParamRSSI, rssi)
	o.PoA = poa
	return o
}

// onWiFi is a machine whose link is up at access point A of "home", with an IPv4 path.
func onWiFi(t testing.TB) *machineTest {
	t.Helper()
	h := newMachine(t)
	h.give(association(mihf.AssociationAuthorised, apA, "home"))
	h.give(device{v4: true}.facts())
	h.want("link_up", "address_changed invalid Prefix>192.0.2.7/24", "path_usable v4")
	return h
}

// onCable is a machine of a link without association, with an IPv4 path.
func onCable(t testing.TB) *machineTest {
	t.Helper()
	h := newMachine(t)
	h.give(device{v4: true}.facts())
	h.want("address_changed invalid Prefix>192.0.2.7/24", "link_up", "path_usable v4")
	return h
}
