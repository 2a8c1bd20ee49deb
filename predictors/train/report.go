package train

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"mihf.dev/predictors/score"
)

// Sizes of the report, in pixels.
const (
	panel  = 180
	gap    = 60
	rowGap = 70
	left   = 50
	top    = 50
)

// WriteSVG draws a row for each group: precision, recall and F1 by horizon, the lead times
// of the hits (p10 to p90, with the median), and the reliability at each horizon: how often
// the event came, over how probable it was said to be.
func WriteSVG(w io.Writer, results []Result) error {
	p := &picture{w: bufio.NewWriter(w)}
	width := left + 3*(panel+gap)
	height := top + len(results)*(panel+rowGap)
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", width, height)
	p.printf(`<rect width="100%%" height="100%%" fill="white"/>` + "\n")
	for i, r := range results {
		y := top + i*(panel+rowGap)
		p.text(left, y-28, "start", fmt.Sprintf("%s (model %v)", r.Group, r.Model))
		p.scores(left, y, r.Rows)
		p.leads(left+panel+gap, y, r.Rows)
		p.reliability(left+2*(panel+gap), y, r.Rows)
	}
	p.printf("</svg>\n")
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// colours are those of horizons, and of precision, recall and F1.
var colours = []string{"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377"}

func colour(i int) string { return colours[i%len(colours)] }

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// picture writes elements; the error is told by Flush.
type picture struct{ w *bufio.Writer }

func (p *picture) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.w, format, args...) }

func (p *picture) text(x, y int, anchor, s string) {
	p.printf(`<text x="%d" y="%d" text-anchor="%s">%s</text>`+"\n", x, y, anchor, escape.Replace(s))
}

func (p *picture) line(x1, y1, x2, y2 float64, stroke string) {
	p.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, stroke)
}

func (p *picture) dot(x, y float64, fill string) {
	p.printf(`<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x, y, fill)
}

// axes draws a panel with a scale from 0 to high.
func (p *picture) axes(x, y int, title string, high float64) {
	p.text(x, y-10, "start", title)
	p.printf(`<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#888"/>`+"\n", x, y, panel, panel)
	for i := range 5 {
		v := float64(i) / 4
		at := float64(y) + panel*(1-v)
		p.line(float64(x)-4, at, float64(x), at, "#888")
		p.text(x-6, int(at)+4, "end", fmt.Sprintf("%.3g", v*high))
	}
}

func (p *picture) horizons(x, y int, rows []score.Row) float64 {
	step := panel / float64(len(rows))
	for i, r := range rows {
		p.text(x+int(step*(float64(i)+0.5)), y+panel+14, "middle", fmt.Sprintf("%g s", r.HorizonS))
	}
	return step
}

func (p *picture) scores(x, y int, rows []score.Row) {
	p.axes(x, y, "", 1)
	step := p.horizons(x, y, rows)
	for k, name := range []string{"precision", "recall", "F1"} {
		p.printf(`<text x="%d" y="%d" fill="%s">%s</text>`+"\n", x+60*k, y-10, colour(k), name)
	}
	for i, r := range rows {
		for k, v := range []float64{r.Precision, r.Recall, r.F1} {
			bar := step / 5
			p.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n",
				float64(x)+step*float64(i)+bar*(float64(k)+1), float64(y)+panel*(1-v), bar, panel*v, colour(k))
		}
	}
}

func (p *picture) leads(x, y int, rows []score.Row) {
	high := 0.1
	for _, r := range rows {
		high = max(high, r.HorizonS)
	}
	p.axes(x, y, "lead of the hits: p10, median, p90, s", high)
	step := p.horizons(x, y, rows)
	for i, r := range rows {
		if r.LeadP50S == nil {
			continue
		}
		at := float64(x) + step*(float64(i)+0.5)
		height := func(v float64) float64 { return float64(y) + panel*(1-v/high) }
		p.line(at, height(*r.LeadP10S), at, height(*r.LeadP90S), colour(0))
		p.dot(at, height(*r.LeadP50S), colour(0))
	}
}

func (p *picture) reliability(x, y int, rows []score.Row) {
	p.axes(x, y, "came, over said (10 s and more)", 1)
	p.line(float64(x), float64(y+panel), float64(x+panel), float64(y), "#bbb")
	for i, r := range rows {
		for _, b := range r.Reliability {
			if b.Seconds >= 10 {
				p.dot(float64(x)+panel*b.Said, float64(y)+panel*(1-b.Observed), colour(i))
			}
		}
		p.printf(`<text x="%d" y="%d" fill="%s">%g s</text>`+"\n", x+45*i, y+panel+14, colour(i), r.HorizonS)
	}
}
