package liveview

import (
	"fmt"
	"math"
	"strings"
	"time"

	"mihf.dev/cmd/internal/show"
	"mihf.dev/mihf"
)

// style is how a piece of text looks, as parameters of SGR (ECMA-48 8.3.117).
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "1;31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// frame is what is drawn at once.
type frame struct {
	now    mihf.Time
	clock  func(mihf.Time) string // wall time, for people
	width  int
	height int
	colour bool
	lines  []string
}

// piece is a text with one style.
type piece struct {
	s    style
	text string
}

// put adds a line, cut to the width.
func (f *frame) put(pieces ...piece) {
	var b strings.Builder
	left := f.width
	for _, p := range pieces {
		text := show.Fit(p.text, left)
		left -= show.Width(text)
		if f.colour && p.s != plain && text != "" {
			text = "\x1b[" + string(p.s) + "m" + text + "\x1b[0m"
		}
		b.WriteString(text)
		if left <= 0 {
			break
		}
	}
	s := b.String()
	if !f.colour {
		s = strings.TrimRight(s, " ")
	}
	f.lines = append(f.lines, s)
}

// Least size at which there is room for more than the heading.
const (
	minWidth  = 24
	minHeight = 4
)

// render draws the state into at most height lines of at most width cells.
func (s *state) render(f *frame) []string {
	f.lines = nil
	if f.width < minWidth || f.height < minHeight {
		f.put(piece{plain, "too small"})
		return f.lines
	}
	s.heading(f)
	if s.snapshot == nil {
		f.put(piece{dim, "waiting for the daemon's state"})
		return f.lines
	}
	room := f.height - len(f.lines) - 1         // the blank line before the events
	flows := min(len(s.snapshot.Flows), room/5) // with little room, none
	events := min(max(room/4, 3), room)
	links := room - events - 1
	if flows > 0 {
		links -= flows + 1
	}
	s.drawLinks(f, max(links, 1))
	s.drawFlows(f, flows)
	for _, text := range s.missing() {
		if len(f.lines)+1+events >= f.height {
			break
		}
		f.put(piece{dim, text})
	}
	s.drawEvents(f)
	if len(f.lines) > f.height {
		f.lines = f.lines[:f.height]
	}
	return f.lines
}

func (s *state) heading(f *frame) {
	left, right := "mihf", f.clock(f.now)+"  q quits"
	if n := s.snapshot; n != nil {
		left = fmt.Sprintf("mihf on %s  run %s  sequence %d", show.Name(n.Node), n.Boot, n.Sequence)
	}
	room := f.width - show.Width(right) - 2
	if room < 8 {
		right, room = "", f.width
	}
	f.put(piece{bold, show.Pad(show.Fit(left, room), room)}, piece{dim, "  " + right})
	if s.problem != "" {
		f.put(piece{red, show.Text(s.problem)})
		return
	}
	f.put()
}

// drawLinks gives each link its lines: the whole block to as many as fit, in the order of
// weight, and one line to the others.
func (s *state) drawLinks(f *frame, room int) {
	links := s.sorted()
	if len(links) == 0 {
		f.put(piece{dim, "no links: no sensor has seen one"})
		return
	}
	spare := room - len(links)
	for i, l := range links {
		if i == room-1 && len(links) > room {
			f.put(piece{dim, fmt.Sprintf("and %d more links", len(links)-i)})
			return
		}
		s.drawLink(f, l)
		if s.radio(l) && spare >= 3 {
			spare -= 3
			s.drawTrace(f, l)
		}
	}
}

// linkWidth is that of a link's id.
const linkWidth = len("ethernet-00000000")

func (s *state) drawLink(f *frame, l *mihf.LinkStatus) {
	name := ""
	if l.Facts != nil {
		name = show.Name(l.Facts.Name)
	}
	st, word := red, "down"
	if l.Up {
		st, word = green, "up"
	}
	if !l.Since.IsZero() {
		word += " " + show.Span(f.now.Sub(l.Since))
	}
	if l.Prediction.Known() {
		st, word = yellow, "going down"
	}
	f.put(
		piece{bold, show.Pad(show.Fit(show.Name(l.Link), linkWidth), linkWidth) + " "}, piece{plain, show.Pad(show.Fit(name, 9), 9) + " "},
		piece{st, show.Pad(word, 11) + " "}, piece{plain, where(l)},
	)
}

// where says what the link is attached to, and by what it can be used.
func where(l *mihf.LinkStatus) string {
	var s []string
	if len(l.SSID) > 0 {
		s = append(s, show.SSID(l.SSID))
	}
	if l.PoA != "" {
		s = append(s, show.Name(l.PoA))
	}
	if l.UsableIPv4 {
		s = append(s, "IPv4")
	}
	if l.UsableIPv6 {
		s = append(s, "IPv6")
	}
	if l.HoldDown {
		s = append(s, "held down")
	}
	if c := l.LCI; c != nil {
		for _, x := range [...]struct {
			way string
			c   mihf.Characteristic
		}{{"up ", c.CapacityUpBPS}, {"down ", c.CapacityDownBPS}} {
			if x.c.Known() && x.c.Source != mihf.SourcePHY { // that is no capacity
				s = append(s, x.way+show.Rate(x.c.Value))
			}
		}
	}
	return strings.Join(s, " ")
}

// labelWidth is that of the text before a trace.
const labelWidth = 16

// drawTrace draws the three lines below a link: signal, probability, and what is expected.
func (s *state) drawTrace(f *frame, l *mihf.LinkStatus) {
	t := s.links[l.Link]
	n := f.width - labelWidth - 10
	if n < 8 {
		f.put()
		f.put()
		s.drawExpected(f, l)
		return
	}
	cols := t.signal.columns(f.now, n, 2*time.Second)
	value, span := show.Unknown, ""
	low, high, ok := show.Range(cols, 20)
	if ok {
		value = show.Value(t.parameter, t.signal.values[len(t.signal.values)-1])
		span = show.Number(low) + ".." + show.Number(high)
	}
	f.put(piece{plain, "  " + show.Pad(value, labelWidth-2)}, piece{cyan, show.Pad(show.Sparkline(cols, low, high), n)}, piece{dim, " " + span})
	cols = t.loss.columns(f.now, n, 2*time.Second)
	p := math.NaN()
	if len(t.loss.values) > 0 {
		p = t.loss.values[len(t.loss.values)-1]
	}
	value = show.Unknown
	if !math.IsNaN(p) && l.Forecast != nil {
		value = show.Probability(p)
	}
	f.put(piece{plain, show.Pad("  P(loss) "+value, labelWidth)}, piece{yellow, show.Pad(show.Sparkline(cols, 0, 1), n)}, piece{dim, " in 2 s"})
	s.drawExpected(f, l)
}

// drawExpected says what the forecast and the open prediction say.
func (s *state) drawExpected(f *frame, l *mihf.LinkStatus) {
	if p, ok := l.Prediction.Get(); ok {
		gone := f.now.Sub(p.OpenedAt)
		f.put(piece{yellow, fmt.Sprintf("  %s expected, announced %s ago  %s  [%s rev %d]", p.Cause, show.Span(gone), s.quantiles(f, l, p.Cause), p.ID, p.Revision)})
		return
	}
	if l.Forecast == nil {
		f.put(piece{dim, "  no forecast"})
		return
	}
	f.put(piece{dim, "  " + s.quantiles(f, l, mihf.CauseLoss)})
}

func (s *state) quantiles(f *frame, l *mihf.LinkStatus, c mihf.Cause) string {
	if l.Forecast == nil {
		return "no forecast"
	}
	age := f.now.Sub(l.Forecast.At)
	q := func(x float64) (string, bool) {
		d, ok := l.Forecast.Of(c).Quantile(x)
		return show.Span(max(d-age, 0)), ok
	}
	p10, ok := q(0.1)
	if !ok {
		return "no " + c.String() + " expected within 10 s"
	}
	p50, _ := q(0.5)
	p90, _ := q(0.9)
	return fmt.Sprintf("%s in p10 %s  p50 %s  p90 %s", c, p10, p50, p90)
}

func (s *state) drawFlows(f *frame, room int) {
	flows := s.snapshot.Flows
	if room == 0 {
		return
	}
	frozen := 0
	for i := range flows {
		if flows[i].Frozen {
			frozen++
		}
	}
	f.put(piece{bold, fmt.Sprintf("Flows: %d, %d frozen", len(flows), frozen)})
	for i := range flows[:room] {
		st, word := green, "running"
		x := &flows[i]
		if x.Frozen {
			st, word = red, "frozen "+show.Span(f.now.Sub(x.FrozenSince))
		}
		f.put(
			piece{plain, show.Pad(shortID(x.Spec.ID), 9)}, piece{plain, " " + show.Pad(show.Fit(show.Name(x.Link), linkWidth), linkWidth) + " "}, piece{st, show.Pad(word, 15)},
			piece{plain, fmt.Sprintf("%s  lead %s%s  epoch %d", x.Spec.Direction, show.Span(x.Lead), measured(x), x.Epoch)},
		)
	}
}

// measured shows the RTT that the kernel measures.
func measured(x *mihf.FlowStatus) string {
	if x.RTTSource != mihf.RTTMeasured {
		return ""
	}
	return "  rtt " + show.Span(x.RTT)
}

// shortID shows the end of a flow's id, which differs between flows of one moment.
func shortID(id mihf.FlowID) string {
	if len(id) <= 8 {
		return show.Name(id)
	}
	return "…" + show.Name(id[len(id)-8:])
}

func (s *state) drawEvents(f *frame) {
	f.put()
	if len(s.lines) == 0 {
		f.put(piece{dim, "no events yet"})
	}
	room := max(f.height-len(f.lines), 0)
	lines := s.lines[max(len(s.lines)-room, 0):]
	for i := range lines {
		l := &lines[i]
		st := dim
		if l.loud {
			st = plain
		}
		when := f.clock(l.at)
		if l.at.IsZero() {
			when = show.Pad(show.Unknown, show.Width(f.clock(f.now)))
		}
		f.put(piece{dim, when + " "}, piece{st, show.Pad(show.Fit(s.name(l.link), 9), 9) + " " + l.kind + ": " + l.text})
	}
}

// name shows a link by its interface's name where it has one.
func (s *state) name(id mihf.LinkID) string {
	for i := range s.snapshot.Links {
		if l := &s.snapshot.Links[i]; l.Link == id && l.Facts != nil && l.Facts.Name != "" {
			return show.Name(l.Facts.Name)
		}
	}
	if id == "" {
		return ""
	}
	return show.Name(id)
}
