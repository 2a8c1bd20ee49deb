package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"mihf.dev/mihf"
)

// TraceReader imports a signal trace in CSV: a line of column names, then rows in the
// order of their times. The columns are found by name; those that are not known are
// skipped, and an empty field is unknown.
//
//	t_s        seconds from the start; the only column that must be there, with row
//	row        serving, neighbour, probe, truth, blind
//	poa        the serving or neighbouring point of attachment
//	rssi_dbm, rsrp_dbm, rsrq_db, sinr_db
//	rate_mbps  PHY rate of a row with rssi_dbm; elsewhere a throughput, which is
//	           no parameter of a link and is skipped
//	rtt_ms     round-trip time of a probe that was answered at t_s
//	kind       what a truth row says; of a neighbour row: intra, on the serving
//	           frequency, or inter, on another
//	until_s    end of what a truth or blind row says
//
// Serving and probe rows become ObsRadio; before the first serving row an ObsAssociation
// says that the link is attached. Neighbours become ObsDetected, truth and blind rows
// ObsTruth (a blind row with kind "blind": nothing is judged until its end). Fields are
// not quoted. Times count from [Base].
type TraceReader struct {
	lines   lines
	link    mihf.LinkID
	columns []string
	refused uint64

	attached bool              // the association was given
	next     *mihf.Observation // the row that the association came before
}

// NewTraceReader reads the column names. All observations are given to link.
func NewTraceReader(r io.Reader, link mihf.LinkID) (*TraceReader, error) {
	tr := &TraceReader{lines: newLines(r), link: link}
	b, err := tr.lines.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the columns of a trace: %w", err)
	}
	for name := range strings.SplitSeq(string(bytes.TrimSpace(b)), ",") {
		tr.columns = append(tr.columns, strings.TrimSpace(name))
	}
	for _, need := range []string{"t_s", "row"} {
		if !strings.Contains(","+strings.Join(tr.columns, ",")+",", ","+need+",") {
			return nil, fmt.Errorf("neither a recording, whose first line is JSON, nor a trace: the first line names no column %s", need)
		}
	}
	return tr, nil
}

// Refused returns how many values were left out because they lie outside the range of
// their parameter.
func (tr *TraceReader) Refused() uint64 { return tr.refused }

// Read fills o with the next row. It returns io.EOF at the end; after a [*LineError]
// the next call goes on behind that line.
func (tr *TraceReader) Read(o *mihf.Observation) error {
	if tr.next != nil {
		*o, tr.next = *tr.next, nil
		return nil
	}
	for {
		b, err := tr.lines.next()
		if err != nil {
			return err
		}
		if b = bytes.TrimSpace(b); len(b) == 0 {
			continue
		}
		if err := tr.row(string(b), o); err != nil {
			return &LineError{tr.lines.n, err}
		}
		return nil
	}
}

// attach puts an association before the first serving row.
func (tr *TraceReader) attach(o *mihf.Observation) {
	if tr.attached {
		return
	}
	tr.attached = true
	row := *o
	tr.next = &row
	*o = mihf.Observation{
		At: row.At, Link: row.Link, Sensor: row.Sensor, Kind: mihf.ObsAssociation,
		Association: &mihf.Association{State: mihf.AssociationAuthorised, PoA: row.PoA},
	}
}

// traceRow is a row by its meaning.
type traceRow struct {
	t, until  seconds
	hasUntil  bool
	row, kind string
	poa       mihf.PoA
	values    mihf.Values
	rate      float64 // bit/s
	hasRate   bool
}

func (tr *TraceReader) row(s string, o *mihf.Observation) error {
	fields := strings.Split(s, ",")
	if len(fields) != len(tr.columns) {
		return fmt.Errorf("%d fields, but %d columns", len(fields), len(tr.columns))
	}
	var r traceRow
	haveT := false
	for i, f := range fields {
		if f = strings.TrimSpace(f); f == "" {
			continue
		}
		if err := tr.field(&r, tr.columns[i], f); err != nil {
			return err
		}
		haveT = haveT || tr.columns[i] == "t_s"
	}
	if !haveT {
		return errors.New("t_s is missing")
	}
	return tr.observation(&r, o)
}

// traceParameters says which columns are values, and what makes them ours.
var traceParameters = map[string]struct {
	p     mihf.Parameter
	scale float64
}{
	"rssi_dbm": {mihf.ParamRSSI, 1},
	"rsrp_dbm": {mihf.ParamRSRP, 1},
	"rsrq_db":  {mihf.ParamRSRQ, 1},
	"sinr_db":  {mihf.ParamSINR, 1},
	"rtt_ms":   {mihf.ParamRTT, 1e-3},
}

func (tr *TraceReader) field(r *traceRow, column, f string) error {
	switch column {
	case "row":
		r.row = f
		return nil
	case "kind":
		r.kind = f
		return nil
	case "poa":
		r.poa = mihf.PoA(f)
		return nil
	case "t_s", "until_s", "rate_mbps":
	default:
		if _, ok := traceParameters[column]; !ok {
			return nil
		}
	}
	v, err := strconv.ParseFloat(f, 64)
	if err != nil {
		return fmt.Errorf("%s %q is not a number", column, f)
	}
	switch column {
	case "t_s":
		r.t = seconds(v)
	case "until_s":
		r.until, r.hasUntil = seconds(v), true
	case "rate_mbps":
		r.rate, r.hasRate = v*1e6, true
	default:
		if c := traceParameters[column]; !r.values.Set(c.p, v*c.scale) {
			tr.refused++
		}
	}
	return nil
}

func (tr *TraceReader) observation(r *traceRow, o *mihf.Observation) error {
	l := line{T: &r.t}
	*o = mihf.Observation{Link: tr.link, Sensor: "trace"}
	if err := l.times(o); err != nil {
		return err
	}
	switch r.row {
	case "serving", "probe":
		if r.hasRate && r.values.Has(mihf.ParamRSSI) && !r.values.Set(mihf.ParamTxPHYRate, r.rate) {
			tr.refused++
		}
		o.Kind, o.PoA, o.Values = mihf.ObsRadio, r.poa, r.values
		if r.row == "serving" {
			tr.attach(o)
		}
	case "neighbour":
		switch r.kind {
		case "intra":
			r.values.Set(mihf.ParamCoChannel, 1)
		case "inter":
			r.values.Set(mihf.ParamCoChannel, 0)
		}
		o.Kind, o.Detected = mihf.ObsDetected, &mihf.Detected{PoA: r.poa, Values: r.values}
	case "truth", "blind":
		if r.row == "blind" {
			r.kind = r.row
		}
		o.Kind, o.Truth = mihf.ObsTruth, &mihf.Truth{Kind: r.kind}
		if r.hasUntil {
			var err error
			if o.Truth.Until, err = r.until.until(o.At); err != nil {
				return fmt.Errorf("until_s: %w", err)
			}
		}
	default:
		return fmt.Errorf("row %q is not known", r.row)
	}
	return nil
}

// ImportTrace reads a whole trace. Without a link one is made up: wifi where any row has
// an RSSI, else wwan.
func ImportTrace(r io.Reader, link mihf.LinkID) ([]mihf.Observation, error) {
	l, err := importTrace(r, link)
	if err != nil {
		return nil, err
	}
	return l.rest, nil
}

func importTrace(r io.Reader, link mihf.LinkID) (*list, error) {
	tr, err := NewTraceReader(r, link)
	if err != nil {
		return nil, err
	}
	var all []mihf.Observation
	t := mihf.LinkWWAN
	for {
		var o mihf.Observation
		if err := tr.Read(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("import a trace: %w", err)
		}
		if o.Values.Has(mihf.ParamRSSI) {
			t = mihf.LinkWiFi
		}
		all = append(all, o)
	}
	if link == "" {
		link = mihf.NewLinkID(t, "trace")
		for i := range all {
			all[i].Link = link
		}
	}
	return &list{all, tr.Refused()}, nil
}
