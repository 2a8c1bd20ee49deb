package show

import (
	"fmt"
	"strings"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
)

// change joins an old and a new state, and why.
func change(old, now, why string) string {
	s := old + " → " + now
	if why != "" {
		s += ", " + why
	}
	return s
}

// Event says what changed: old → new, and why.
func Event(ev *mihf.Event) string {
	switch ev.Kind {
	case mihf.LinkDetected:
		return detected(or(ev.Detected))
	case mihf.LinkUp:
		u := or(ev.Up)
		return change("down", "up", place(u.PoA, u.SSID))
	case mihf.LinkDown:
		return change("up", "down", down(ev))
	case mihf.LinkParametersReport:
		return report(&ev.Report)
	case mihf.LinkGoingDown:
		return goingDown(&ev.Prediction)
	case mihf.LinkEventRollback:
		return change("going down", "steady", "taken back"+named(ev))
	case mihf.PredictionExpired:
		return change("going down", "steady", "did not come true in time"+named(ev))
	case mihf.LinkHandoverImminent, mihf.LinkHandoverComplete:
		return handover(ev)
	case mihf.PathUsable:
		return path(or(ev.Path), true)
	case mihf.PathLost:
		return path(or(ev.Path), false)
	default:
		return own(ev)
	}
}

// own describes the kinds that 802.21 does not have.
func own(ev *mihf.Event) string {
	switch ev.Kind {
	case mihf.DefaultRouteChanged:
		c := or(ev.Egress)
		return Family(c.New.IPv6 || c.Old.IPv6) + " " + change(egress(&c.Old), egress(&c.New), "")
	case mihf.AddressChanged:
		c := or(ev.Address)
		why := ""
		if c.Minor {
			why = "minor"
		}
		return change(LinkAddress(&c.Old), LinkAddress(&c.New), why)
	case mihf.LinkRenamed:
		c := or(ev.Rename)
		return change(Name(c.Old), Name(c.New), "")
	case mihf.LinkRemoved:
		why := ev.Removed.String()
		if ev.Removed == mihf.DownRemoved { // says no more than the kind
			why = ""
		}
		return change("present", "removed", why)
	case mihf.SensorConditionChanged:
		c := or(ev.Condition)
		return strings.TrimSuffix(Name(c.Sensor)+" "+change(Unknown, c.Condition.String(), Text(c.Text)), ", ")
	case mihf.ResumedFromSuspend:
		return change("suspended", "running", "for "+Span(ev.Gap))
	case mihf.Resync:
		c := or(ev.Resync)
		return resync(c)
	case mihf.ShareReport:
		c := or(ev.ShareReport)
		return "flow " + Name(c.Flow) + " limit " + Rate(c.LimitBPS)
	default:
		return "a kind of event that this program does not know"
	}
}

func or[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}

func place(poa mihf.PoA, ssid []byte) string {
	switch {
	case poa == "" && len(ssid) == 0:
		return ""
	case len(ssid) == 0:
		return "at " + Name(poa)
	default:
		return "at " + Name(poa) + " (" + SSID(ssid) + ")"
	}
}

func named(ev *mihf.Event) string {
	if ev.Prediction.ID.IsZero() {
		return ""
	}
	return " [" + ev.Prediction.ID.String() + "]"
}

func detected(d *mihf.Detected) string {
	s := change(Unknown, "heard", Name(d.PoA)+" ("+SSID(d.SSID)+")")
	if v, ok := Signal(&d.Values); ok {
		s += " " + v
	}
	return s
}

func down(ev *mihf.Event) string {
	d := &ev.Down
	s := d.Reason.String()
	if d.Code != 0 {
		s += fmt.Sprintf(" (code %d)", d.Code)
	}
	if d.PoA != "" {
		s += ", was at " + Name(d.PoA)
	}
	if d.Withheld > 0 {
		s += ", withheld " + Span(d.Withheld)
	}
	if !ev.Prediction.ID.IsZero() {
		s += ", as predicted" + named(ev)
	}
	return s
}

func report(r *mihf.Report) string {
	old := Unknown
	if v, ok := r.Previous.Get(); ok {
		old = Value(r.Parameter, v)
	}
	why := ""
	if t, ok := r.Threshold.Get(); ok {
		why = t.Direction.String() + " " + Value(r.Parameter, t.Value)
	}
	if r.Periodic {
		why = strings.TrimPrefix(why+", periodic", ", ")
	}
	return r.Parameter.String() + " " + change(old, Value(r.Parameter, r.Value), why)
}

func goingDown(p *mihf.Prediction) string {
	old, now := "steady", "going down"
	if p.Revision > 0 {
		old = now
	}
	if p.Cause == mihf.CauseHandover {
		now = "handing over"
	}
	return fmt.Sprintf("%s, %s (p10 %s, p90 %s, P %s) [%s rev %d]",
		old+" → "+now, Text(conv.ReasonText(p)), Span(p.P10), Span(p.P90), Probability(p.Confidence), p.ID, p.Revision)
}

func handover(ev *mihf.Event) string {
	h := or(ev.Handover)
	old, now := Name(h.OldPoA), Name(h.NewPoA)
	if h.OldLink != h.NewLink {
		old, now = Name(h.OldLink), Name(h.NewLink)
	}
	var why []string
	if ev.Kind == mihf.LinkHandoverImminent {
		why = append(why, "about to")
	}
	if h.NetworkOrdered {
		why = append(why, "ordered by the network")
	}
	if gap, ok := h.DataGap.Get(); ok {
		why = append(why, "data gap "+Span(gap))
	}
	if !ev.Prediction.ID.IsZero() {
		why = append(why, "as predicted"+named(ev))
	}
	return change(old, now, strings.Join(why, ", "))
}

func path(p *mihf.Path, usable bool) string {
	if !usable {
		return Family(p.IPv6) + " " + change("usable", "lost", p.Reason.String())
	}
	return Family(p.IPv6) + " " + change("lost", "usable", "from "+Address(p.Source)+" by "+Address(p.Gateway))
}

func egress(e *mihf.Egress) string {
	if e.Link == "" {
		return "none"
	}
	return fmt.Sprintf("%s by %s metric %d", Name(e.Link), Address(e.Gateway), e.Metric)
}

// LinkAddress shows an address of a link with what keeps it from being used.
func LinkAddress(a *mihf.Address) string {
	if !a.Prefix.IsValid() {
		return "none"
	}
	s := Text(a.Prefix.String())
	if a.Tentative {
		s += " (tentative)"
	}
	if a.Deprecated {
		s += " (deprecated)"
	}
	return s
}

func resync(c *mihf.ResyncInfo) string {
	s := Name(c.Sensor) + " read all its state again"
	if c.Lost {
		s += ", messages were lost"
	}
	if c.Reason != "" {
		s += ": " + Text(c.Reason)
	}
	return s
}

// signals are the parameters that tell how well a link hears, best first.
var signals = []mihf.Parameter{
	mihf.ParamBeaconSignal, mihf.ParamRSSIAverage, mihf.ParamRSSI, mihf.ParamRSRP, mihf.ParamNRRSRP, mihf.ParamRSCP, mihf.ParamCarrierRSSI, mihf.ParamSINR, mihf.ParamQuality, mihf.ParamRTT,
}

// SignalOf returns the parameter that best tells how well a link hears, with its value.
func SignalOf(vs *mihf.Values) (mihf.Parameter, float64, bool) {
	for _, p := range signals {
		if v, ok := vs.Get(p); ok {
			return p, v, true
		}
	}
	return 0, 0, false
}

// Signal shows the value of [SignalOf].
func Signal(vs *mihf.Values) (string, bool) {
	p, v, ok := SignalOf(vs)
	if !ok {
		return Unknown, false
	}
	return Value(p, v), true
}
