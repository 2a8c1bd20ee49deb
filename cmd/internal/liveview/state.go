package liveview

import (
	"math"
	"slices"
	"strings"
	"time"

	"mihf.dev/cmd/internal/show"
	"mihf.dev/mihf"
)

// window is the time that traces show.
const window = time.Minute

// Bounds of what is kept.
const (
	maxSamples = 1024 // a link
	maxLines   = 64
)

// state is what the view shows. It is pure.
type state struct {
	snapshot *mihf.Snapshot
	links    map[mihf.LinkID]*trace
	lines    []line // newest last
	changes  show.Changes
	problem  string // why there is no answer; "": there is one
}

// trace is the last minute of one link.
type trace struct {
	parameter mihf.Parameter
	signal    series
	loss      series // P(loss within 2 s)
}

// series is samples in the order of their times.
type series struct {
	at     []mihf.Time
	values []float64
}

// line is one event, hint or gap.
type line struct {
	at   mihf.Time
	link mihf.LinkID
	kind string
	text string
	loud bool   // worth a colour
	key  string // a newer line with the same key takes its place; "": none
}

// horizon is how far the probability looks that the view shows.
const horizon = 2 * time.Second

// update takes the newest state.
func (s *state) update(snap *mihf.Snapshot) {
	s.snapshot, s.problem = snap, ""
	if s.links == nil {
		s.links = map[mihf.LinkID]*trace{}
	}
	known := make(map[mihf.LinkID]bool, len(snap.Links))
	for i := range snap.Links {
		l := &snap.Links[i]
		known[l.Link] = true
		t := s.links[l.Link]
		if t == nil {
			t = &trace{}
			s.links[l.Link] = t
		}
		t.add(l)
		t.signal.forget(snap.At.Add(-window))
		t.loss.forget(snap.At.Add(-window))
	}
	for id := range s.links {
		if !known[id] {
			delete(s.links, id)
		}
	}
}

func (t *trace) add(l *mihf.LinkStatus) {
	if p, v, ok := show.SignalOf(&l.Values); ok {
		if p != t.parameter {
			t.parameter, t.signal = p, series{}
		}
		t.signal.add(l.ValuesAt, v)
	}
	if l.Forecast != nil {
		t.loss.add(l.Forecast.At, l.Forecast.Loss.Within(horizon))
	}
}

func (s *series) add(at mihf.Time, v float64) {
	if n := len(s.at); n > 0 && at <= s.at[n-1] {
		return
	}
	s.at, s.values = append(s.at, at), append(s.values, v)
}

// forget drops what is older than a moment, and the oldest beyond the bound.
func (s *series) forget(before mihf.Time) {
	i, _ := slices.BinarySearch(s.at, before)
	i = max(i, len(s.at)-maxSamples)
	s.at, s.values = slices.Delete(s.at, 0, i), slices.Delete(s.values, 0, i)
}

// columns spreads the series over n columns that end now. A gap of at most hold is
// filled with the value before it.
func (s *series) columns(now mihf.Time, n int, hold time.Duration) []float64 {
	at := make([]float64, len(s.at))
	for i, t := range s.at {
		at[i] = t.Seconds()
	}
	end := now.Seconds()
	cols := show.Resample(at, s.values, end-window.Seconds(), end, n)
	left := 0
	for i := 1; i < n; i++ {
		if !math.IsNaN(cols[i]) {
			left = int(hold.Seconds() / window.Seconds() * float64(n))
			continue
		}
		if left > 0 {
			cols[i] = cols[i-1]
			left--
		}
	}
	return cols
}

// take notes a delivery among the last events.
func (s *state) take(d *mihf.Delivery) {
	l := line{text: s.changes.Text(d)}
	switch d.Kind {
	case mihf.DeliverEvent:
		ev := &d.Event
		l.at, l.link, l.kind, l.loud = ev.At, ev.Link, strings.TrimPrefix(ev.Kind.String(), "link_"), loud(ev.Kind)
		if ev.Kind == mihf.LinkGoingDown && ev.Prediction.Revision > 0 {
			l.key = "revision of " + ev.Prediction.ID.String()
		}
	case mihf.DeliverHint:
		h := &d.Hint
		if h.Kind == mihf.HintCharacteristics {
			return
		}
		l.at, l.link, l.kind, l.loud = h.At, h.Link, h.Kind.String(), true
		l.text = strings.Replace(l.text, show.Name(h.Flow), shortID(h.Flow), 1)
		if strings.Contains(l.text, show.Renewed) {
			l.key = "lease of " + string(h.Flow)
		}
	case mihf.DeliverGap:
		l.kind, l.loud = "gap", true
	case mihf.DeliverSnapshot:
		s.update(d.Snapshot)
		return
	}
	if l.key != "" {
		s.lines = slices.DeleteFunc(s.lines, func(x line) bool { return x.key == l.key })
	}
	s.lines = append(s.lines, l)
	if n := len(s.lines) - maxLines; n > 0 {
		s.lines = slices.Delete(s.lines, 0, n)
	}
}

func loud(k mihf.Kind) bool {
	switch k {
	case mihf.LinkGoingDown, mihf.LinkDown, mihf.LinkEventRollback, mihf.LinkHandoverComplete, mihf.PathLost, mihf.PathUsable:
		return true
	default:
		return false
	}
}

// missing says what is not there for the view to show, and why.
func (s *state) missing() (texts []string) {
	n := s.snapshot
	for _, c := range n.Sensors {
		switch c.Condition {
		case mihf.ConditionOK, mihf.ConditionStarting:
		default:
			text := "sensor " + show.Name(c.Sensor) + " " + c.Condition.String()
			if c.Text != "" {
				text += ": " + show.Text(c.Text)
			}
			texts = append(texts, text)
		}
	}
	if !n.Kinds.Has(mihf.LinkParametersReport) {
		texts = append(texts, "no radio sensor: no signals, and no forecasts")
	}
	if len(n.Egress) == 0 {
		texts = append(texts, "no default route: no link leads outside")
	}
	if len(n.Flows) == 0 {
		texts = append(texts, "no flows: no transport has registered one that you may see")
	}
	return texts
}

// sorted returns the links, those that matter most first.
func (s *state) sorted() []*mihf.LinkStatus {
	out := make([]*mihf.LinkStatus, 0, len(s.snapshot.Links))
	for i := range s.snapshot.Links {
		out = append(out, &s.snapshot.Links[i])
	}
	slices.SortStableFunc(out, func(a, b *mihf.LinkStatus) int { return s.weight(b) - s.weight(a) })
	return out
}

func (s *state) weight(l *mihf.LinkStatus) int {
	w := 0
	if l.Prediction.Known() {
		w += 8
	}
	if l.Link.Type() != mihf.LinkLoopback {
		w += 4
	}
	if s.radio(l) {
		w += 2
	}
	if l.Up {
		w++
	}
	return w
}

// radio reports whether there is a trace to show.
func (s *state) radio(l *mihf.LinkStatus) bool {
	t := s.links[l.Link]
	return t != nil && (len(t.signal.at) > 0 || len(t.loss.at) > 0)
}
