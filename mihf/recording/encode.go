package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"mihf.dev/mihf"
)

// Writer writes a recording, line by line.
type Writer struct {
	w     io.Writer
	start mihf.Time
	buf   bytes.Buffer
	enc   *json.Encoder
}

// NewWriter writes the header. The times of the recording count from start.
func NewWriter(w io.Writer, h Header, start mihf.Time) (*Writer, error) {
	wr := &Writer{w: w, start: start}
	wr.enc = json.NewEncoder(&wr.buf)
	wr.enc.SetEscapeHTML(false)
	hl := headerLine{
		Format: Format, Version: Version,
		Node: text(h.Node), Started: h.Started, Description: text(h.Description),
	}
	for _, s := range h.Sensors {
		hl.Sensors = append(hl.Sensors, text(s))
	}
	if seed, ok := h.Seed.Get(); ok {
		hl.Seed = &seed
	}
	if err := wr.write(&hl); err != nil {
		return nil, fmt.Errorf("write the header of a recording: %w", err)
	}
	return wr, nil
}

// Write writes one observation as one line, with one call of the underlying writer.
func (w *Writer) Write(o *mihf.Observation) error {
	l := w.line(o)
	if err := w.write(&l); err != nil {
		return fmt.Errorf("write an observation of kind %v: %w", o.Kind, err)
	}
	return nil
}

func (w *Writer) write(v any) error {
	w.buf.Reset()
	if err := w.enc.Encode(v); err != nil {
		return err
	}
	if w.buf.Len() > MaxLine {
		return fmt.Errorf("line of %d bytes, limit %d", w.buf.Len(), MaxLine)
	}
	_, err := w.w.Write(w.buf.Bytes())
	return err
}

func (w *Writer) line(o *mihf.Observation) line {
	t := toSeconds(o.At.Sub(w.start))
	l := line{
		T: &t, Kind: o.Kind.String(), Link: text(o.Link), Sensor: text(o.Sensor), Age: toSeconds(o.Age),
		PoA: text(o.PoA), Values: values(&o.Values), Lost: o.Lost, Gap: toSeconds(o.Gap),
		Facts: encodeFacts(o.Facts), Association: encodeAssociation(o.Association), Flow: encodeFlow(o.Flow),
	}
	if o.Kind == mihf.ObsScan || o.Scanning {
		l.Scanning = &o.Scanning
	}
	if o.Kind == mihf.ObsLinkGone || o.Gone != 0 {
		l.Reason = o.Gone.String()
	}
	if d := o.Detected; d != nil {
		l.Detected = &detected{PoA: text(d.PoA), SSID: d.SSID, Values: values(&d.Values)}
	}
	if e := o.Egress; e != nil {
		l.Egress = &egress{e.IPv6, text(e.Link), e.Gateway, e.Source, e.Table, e.Metric}
	}
	if p := o.Peer; p != nil {
		l.Peer = &peer{p.Peer, text(p.Link), p.Source, p.Gateway}
	}
	if c := o.Condition; c != nil {
		l.Condition = &condition{text(c.Sensor), c.Condition.String(), text(c.Text)}
	}
	if tr := o.Truth; tr != nil {
		l.Truth = &truth{Kind: text(tr.Kind)}
		if !tr.Until.IsZero() {
			until := toSeconds(tr.Until.Sub(w.start))
			l.Truth.Until = &until
		}
	}
	return l
}

func values(vs *mihf.Values) map[string]float64 {
	if vs.Len() == 0 {
		return nil
	}
	m := make(map[string]float64, vs.Len())
	vs.All(func(p mihf.Parameter, v float64) bool {
		m[p.String()] = v
		return true
	})
	return m
}

func encodeFacts(f *mihf.LinkFacts) *facts {
	if f == nil {
		return nil
	}
	out := &facts{
		Name: text(f.Name), Index: f.Index, Namespace: text(f.Namespace), Kind: text(f.Kind),
		HardwareAddr: text(f.HardwareAddr), MTU: f.MTUBytes,
		AdminUp: f.AdminUp, Carrier: f.Carrier, Oper: f.Oper.String(),
	}
	for _, a := range f.Addresses {
		out.Addresses = append(out.Addresses, address(a))
	}
	for _, r := range f.Defaults {
		out.Defaults = append(out.Defaults, route(r))
	}
	return out
}

func encodeAssociation(a *mihf.Association) *association {
	if a == nil {
		return nil
	}
	out := &association{State: a.State.String(), PoA: text(a.PoA), SSID: a.SSID, Code: a.Code, Local: a.Local, Technology: text(a.Technology)}
	if a.State == mihf.AssociationDisconnected || a.Cause != 0 {
		cause := a.Cause.String()
		out.Cause = &cause
	}
	return out
}
