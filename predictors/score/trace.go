package score

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/recording"
)

// Span is an interval, in seconds from the start of a recording.
type Span struct{ From, To float64 }

// Trace is one link of one recording: what a predictor may see, and the truth.
type Trace struct {
	Name         string
	Observations []mihf.Observation // in their order, without truth
	Events       []float64          // seconds from the start, rising
	Spans        []Span             // that are judged
	End          float64            // of the recording
	Losses       bool               // losses are among the events
	Handovers    bool               // handovers are, or what the source does not say
}

// Read reads a recording or a trace, plain or gzip, to its end and parts it by link.
// Observations of no link are given to each.
func Read(name string, r io.Reader) ([]Trace, error) {
	src, err := recording.Open(r, "")
	if err != nil {
		return nil, fmt.Errorf("score %s: %w", name, err)
	}
	var all []mihf.Observation
	for {
		var o mihf.Observation
		if err := src.Read(&o); errors.Is(err, io.EOF) {
			return Split(name, all), nil
		} else if err != nil {
			return nil, fmt.Errorf("score %s: %w", name, err)
		}
		all = append(all, o)
	}
}

// Split parts observations by link. Links of which no radio says anything are left out.
func Split(name string, all []mihf.Observation) []Trace {
	var links []mihf.LinkID
	for i := range all {
		if l := all[i].Link; all[i].Kind == mihf.ObsRadio && !slices.Contains(links, l) {
			links = append(links, l)
		}
	}
	traces := make([]Trace, 0, len(links))
	for _, l := range links {
		t := Trace{Name: name}
		if len(links) > 1 {
			t.Name += "#" + string(l)
		}
		t.fill(l, all)
		traces = append(traces, t)
	}
	return traces
}

func (t *Trace) fill(link mihf.LinkID, all []mihf.Observation) {
	var blind []Span
	for i := range all {
		o := &all[i]
		if o.Link != "" && o.Link != link {
			continue
		}
		at := since(o.At)
		t.End = max(t.End, at)
		if o.Kind != mihf.ObsTruth {
			t.Observations = append(t.Observations, *o)
			continue
		}
		switch {
		case o.Truth == nil:
		case o.Truth.Kind == "blind":
			blind = append(blind, Span{at, max(at, since(o.Truth.Until))})
		default:
			t.Events = append(t.Events, at)
			loss := isLoss(o.Truth.Kind)
			t.Losses, t.Handovers = t.Losses || loss, t.Handovers || !loss
		}
	}
	slices.Sort(t.Events)
	slices.SortFunc(blind, func(a, b Span) int { return compare(a.From, b.From) })
	from := 0.0
	for _, b := range blind {
		if b.From > from {
			t.Spans = append(t.Spans, Span{from, b.From})
		}
		from = max(from, b.To)
	}
	if t.End > from {
		t.Spans = append(t.Spans, Span{from, t.End})
	}
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// isLoss reports whether a word of truth means that service was lost.
func isLoss(kind string) bool {
	return slices.Contains([]string{"loss", "blackout", "lost", "late"}, kind)
}

// since is a moment in seconds from the start.
func since(t mihf.Time) float64 { return float64(t.Sub(recording.Base)) / 1e9 }

// Moment returns the time of an observation at so many seconds from the start.
func Moment(s float64) mihf.Time {
	return recording.Base.Add(time.Duration(s*1e9 + 0.5))
}

// Until returns the seconds from a moment until the event, and for how many it is known
// whether it came: 0 where nothing is judged.
func (t *Trace) Until(at float64) (event, known float64) {
	for _, s := range t.segments() {
		if at < s.From || at >= s.To {
			continue
		}
		if s.ends {
			return s.event - at, math.Inf(1)
		}
		return math.Inf(1), s.To - at
	}
	return math.Inf(1), 0
}

// Thin returns the trace as a modem shows it that is asked every so often: the serving
// cell's newest reading at that moment, no neighbours, no probes. The truth stays.
func (t *Trace) Thin(every time.Duration) Trace {
	thin := *t
	thin.Observations = nil
	next := mihf.Time(0)
	for i := range t.Observations {
		o := &t.Observations[i]
		switch o.Kind {
		case mihf.ObsDetected:
		case mihf.ObsRadio:
			if o.Values.Has(mihf.ParamRTT) && o.Values.Len() == 1 {
				continue
			}
			if o.At < next {
				continue
			}
			next = o.At.Add(every)
			fallthrough
		default:
			thin.Observations = append(thin.Observations, *o)
		}
	}
	return thin
}

// Judged is which incidence of a forecast is compared with the truth.
type Judged uint8

// What is judged.
const (
	JudgeEither Judged = iota // loss or handover
	JudgeLoss
)

// JudgedOf returns what traces that belong together can be judged by.
func JudgedOf(traces []Trace) Judged {
	loss := false
	for i := range traces {
		if traces[i].Handovers {
			return JudgeEither
		}
		loss = loss || traces[i].Losses
	}
	if loss {
		return JudgeLoss
	}
	return JudgeEither
}
