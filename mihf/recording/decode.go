package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mihf.dev/mihf"
)

func decodeHeader(b []byte) (Header, error) {
	var hl headerLine
	if err := json.Unmarshal(b, &struct {
		Format  *string `json:"format"`
		Version *int    `json:"version"`
	}{&hl.Format, &hl.Version}); err != nil || hl.Format != Format {
		return Header{}, fmt.Errorf("this is not a recording: the first line must be {%q: %q, %q: %d, …}", "format", Format, "version", Version)
	}
	if hl.Version < 1 || hl.Version > Version {
		return Header{}, fmt.Errorf("the recording has version %d of the format; this program reads versions 1 to %d", hl.Version, Version)
	}
	if err := json.Unmarshal(b, &hl); err != nil {
		return Header{}, fmt.Errorf("header: %w", err)
	}
	h := Header{Node: mihf.NodeID(hl.Node), Started: hl.Started, Description: string(hl.Description)}
	for _, s := range hl.Sensors {
		h.Sensors = append(h.Sensors, string(s))
	}
	if hl.Seed != nil {
		h.Seed = mihf.Some(*hl.Seed)
	}
	return h, nil
}

// decode turns a line into an observation and counts the values that it refused.
func decode(b []byte, o *mihf.Observation) (refused int, err error) {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return 0, err
	}
	*o = mihf.Observation{Link: mihf.LinkID(l.Link), Sensor: string(l.Sensor), PoA: mihf.PoA(l.PoA), Lost: l.Lost}
	if o.Kind, err = parse("kind", l.Kind, mihf.ParseObservationKind); err != nil {
		return 0, err
	}
	if err := l.times(o); err != nil {
		return 0, err
	}
	refused = setValues(&o.Values, l.Values)
	if l.Scanning != nil {
		o.Scanning = *l.Scanning
	}
	if l.Reason != "" {
		if o.Gone, err = parse("reason", l.Reason, mihf.ParseDownReason); err != nil {
			return 0, err
		}
	}
	if d := l.Detected; d != nil {
		o.Detected = &mihf.Detected{PoA: mihf.PoA(d.PoA), SSID: d.SSID}
		refused += setValues(&o.Detected.Values, d.Values)
	}
	if err := l.rest(o); err != nil {
		return 0, err
	}
	return refused, complete(o)
}

func (l *line) times(o *mihf.Observation) error {
	if l.T == nil {
		return errors.New(`"t" is missing`)
	}
	t, err := l.T.duration()
	if err != nil {
		return fmt.Errorf("t: %w", err)
	}
	o.At = Base.Add(t)
	if o.At <= 0 {
		return fmt.Errorf("t: %g is more than %v before the start", float64(*l.T), time.Duration(Base))
	}
	if o.Age, err = l.Age.length(); err != nil {
		return fmt.Errorf("age_s: %w", err)
	}
	if o.Gap, err = l.Gap.length(); err != nil {
		return fmt.Errorf("gap_s: %w", err)
	}
	return nil
}

// until reads the end of what is true from t on.
func (s seconds) until(t mihf.Time) (mihf.Time, error) {
	d, err := s.duration()
	if err != nil {
		return 0, err
	}
	if Base.Add(d) < t {
		return 0, fmt.Errorf("%g s is before it begins", float64(s))
	}
	return Base.Add(d), nil
}

// rest decodes the payloads that hold no values.
func (l *line) rest(o *mihf.Observation) (err error) {
	if o.Facts, err = l.Facts.decode(); err != nil {
		return fmt.Errorf("facts: %w", err)
	}
	if o.Association, err = l.Association.decode(); err != nil {
		return fmt.Errorf("association: %w", err)
	}
	if e := l.Egress; e != nil {
		o.Egress = &mihf.Egress{IPv6: e.IPv6, Link: mihf.LinkID(e.Link), Gateway: e.Gateway, Source: e.Source, Table: e.Table, Metric: e.Metric}
	}
	if p := l.Peer; p != nil {
		o.Peer = &mihf.PeerRoute{Peer: p.Peer, Link: mihf.LinkID(p.Link), Source: p.Source, Gateway: p.Gateway}
	}
	if o.Flow, err = l.Flow.decode(); err != nil {
		return fmt.Errorf("flow: %w", err)
	}
	if c := l.Condition; c != nil {
		o.Condition = &mihf.SensorCondition{Sensor: string(c.Sensor), Text: string(c.Text)}
		if o.Condition.Condition, err = parse("condition", c.Condition, mihf.ParseCondition); err != nil {
			return err
		}
	}
	if tr := l.Truth; tr != nil {
		o.Truth = &mihf.Truth{Kind: string(tr.Kind)}
		if tr.Until != nil {
			if o.Truth.Until, err = tr.Until.until(o.At); err != nil {
				return fmt.Errorf("truth: until: %w", err)
			}
		}
	}
	return nil
}

func (f *facts) decode() (_ *mihf.LinkFacts, err error) {
	if f == nil {
		return nil, nil
	}
	out := &mihf.LinkFacts{
		Name: string(f.Name), Index: f.Index, Namespace: string(f.Namespace), Kind: string(f.Kind),
		HardwareAddr: string(f.HardwareAddr), MTUBytes: f.MTU, AdminUp: f.AdminUp, Carrier: f.Carrier,
	}
	if f.Index < 0 {
		return nil, fmt.Errorf("index: %d is below 0", f.Index)
	}
	if f.MTU < 0 {
		return nil, fmt.Errorf("mtu_bytes: %d is below 0", f.MTU)
	}
	if out.Oper, err = parse("oper_state", f.Oper, mihf.ParseOperState); err != nil {
		return nil, err
	}
	for _, a := range f.Addresses {
		if !a.Prefix.IsValid() {
			return nil, errors.New("addresses: one has no prefix")
		}
		out.Addresses = append(out.Addresses, mihf.Address(a))
	}
	for _, r := range f.Defaults {
		out.Defaults = append(out.Defaults, mihf.Route(r))
	}
	return out, nil
}

func (a *association) decode() (_ *mihf.Association, err error) {
	if a == nil {
		return nil, nil
	}
	out := &mihf.Association{PoA: mihf.PoA(a.PoA), SSID: a.SSID, Code: a.Code, Local: a.Local, Technology: string(a.Technology)}
	if out.State, err = parse("state", a.State, mihf.ParseAssociationState); err != nil {
		return nil, err
	}
	if a.Cause != nil {
		if out.Cause, err = parse("cause", *a.Cause, mihf.ParseDownReason); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// complete says which payload a kind lacks.
func complete(o *mihf.Observation) error {
	missing := ""
	switch o.Kind {
	case mihf.ObsLink:
		missing = unless(o.Facts != nil, "facts")
	case mihf.ObsAssociation:
		missing = unless(o.Association != nil, "association")
	case mihf.ObsDetected:
		missing = unless(o.Detected != nil, "detected")
	case mihf.ObsEgress:
		missing = unless(o.Egress != nil, "egress")
	case mihf.ObsPeer:
		missing = unless(o.Peer != nil && o.Peer.Peer.IsValid(), "peer")
	case mihf.ObsFlow:
		missing = unless(o.Flow != nil, "flow")
	case mihf.ObsCondition:
		missing = unless(o.Condition != nil, "condition")
	case mihf.ObsTruth:
		missing = unless(o.Truth != nil, "truth")
	default: // the others need none
	}
	if missing != "" {
		return fmt.Errorf("kind %v without %q", o.Kind, missing)
	}
	return nil
}

func unless(ok bool, name string) string {
	if ok {
		return ""
	}
	return name
}

func setValues(vs *mihf.Values, m map[string]float64) (refused int) {
	for name, v := range m {
		if p, err := mihf.ParseParameter(name); err == nil && !vs.Set(p, v) {
			refused++
		}
	}
	return refused
}

func parse[T any](field, name string, f func(string) (T, bool)) (T, error) {
	v, ok := f(name)
	if !ok {
		return v, fmt.Errorf("%s %q is not known", field, name)
	}
	return v, nil
}
