package freeze

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"mihf.dev/cmd/mihsim/internal/experiment"
	"mihf.dev/integration/sim"
)

// pair is a hand-over between two technologies, with the outcomes of all runs.
type pair struct {
	from, to int // of parameters.Technology
	runs     [variants][]outcome
}

func (p *parameters) pairs(runs int) []*pair {
	var all []*pair
	for from := range p.Technology {
		for to := range p.Technology {
			x := &pair{from: from, to: to}
			for v := range x.runs {
				x.runs[v] = make([]outcome, runs)
			}
			all = append(all, x)
		}
	}
	return all
}

// crossingOf makes the crossing of a run: its moment is random, and the same for all variants.
func (p *parameters) crossingOf(seed uint64, from, to int, v variant, all []stationary) crossing {
	jitter := sim.New(seed).Rand("break").Float64() * p.Handover.JitterRTTs * all[from].rtt
	return crossing{
		from: p.Technology[from], to: p.Technology[to], variant: v,
		at:     seconds(p.Technology[from].SettleSeconds + jitter),
		outage: seconds(p.Handover.BindingSeconds + all[to].rtt),
		target: all[to].rate,
		limit:  seconds(p.Handover.WastedLimitSeconds),
	}
}

func runHandover(ctx context.Context, o experiment.Options) (*experiment.Result, error) {
	p, err := load()
	if err != nil {
		return nil, err
	}
	all, err := p.stationaries(ctx, o)
	if err != nil {
		return nil, err
	}
	pairs := p.pairs(o.Runs)
	per := int(variants) * o.Runs
	err = experiment.Each(ctx, o, len(pairs)*per, func(part int) error {
		x, v, run := pairs[part/per], variant(part%per/o.Runs), part%o.Runs
		c := p.crossingOf(o.SeedOf(run), x.from, x.to, v, all)
		c.record = run == 0
		x.runs[v][run] = p.cross(o.SeedOf(run), c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	r := &experiment.Result{Rows: p.stationaryRows(all)}
	for _, x := range pairs {
		for v := range variants {
			r.Rows = append(r.Rows, p.handoverRow(x, v))
		}
	}
	r.Claims = p.handoverClaims(pairs)
	r.Plots = p.handoverPlots(pairs)
	return r, nil
}

func (p *parameters) handoverRow(x *pair, v variant) experiment.Row {
	m := p.summary(x.runs[v])
	return experiment.Row{
		{Name: "from", Value: p.Technology[x.from].Name},
		{Name: "to", Value: p.Technology[x.to].Name},
		{Name: "variant", Value: v.String()},
		{Name: "lost_down", Value: experiment.Round(m.lostDown, 1)},
		{Name: "first_packet_s", Value: experiment.Round(m.first, 3)},
		{Name: "t95_s", Value: experiment.Round(m.restored, 3)},
		{Name: "wasted", Value: experiment.Round(m.wasted, 1)},
		{Name: "delivered", Value: experiment.Round(m.delivered, 1)},
		{Name: "lost_break", Value: experiment.Round(m.lostBreak, 1)},
		{Name: "not_restored_runs", Value: m.unrestored},
	}
}

// summary is the mean of runs. A rate that was not restored counts with the limit.
type summary struct {
	lostDown, lostBreak, first, restored, wasted, delivered float64
	mostLost                                                int // while down, of any run
	unrestored                                              int
}

func (p *parameters) summary(runs []outcome) summary {
	var m summary
	n := float64(len(runs))
	arrived := 0
	for _, r := range runs {
		m.lostDown += float64(r.lostDown) / n
		m.lostBreak += float64(r.lostBreak) / n
		m.wasted += r.wasted / n
		m.delivered += float64(r.delivered) / n
		m.mostLost = max(m.mostLost, r.lostDown)
		if !math.IsNaN(r.first) {
			arrived++
			m.first += r.first
		}
		restored := r.restored
		if math.IsNaN(restored) {
			m.unrestored++
			restored = p.Handover.WastedLimitSeconds
		}
		m.restored += restored / n
	}
	m.first /= float64(arrived)
	return m
}

func (p *parameters) name(x *pair) string {
	return p.Technology[x.from].Name + "→" + p.Technology[x.to].Name
}

func (p *parameters) find(pairs []*pair, from, to string) *pair {
	for _, x := range pairs {
		if p.Technology[x.from].Name == from && p.Technology[x.to].Name == to {
			return x
		}
	}
	panic("freeze: no technology is called " + from + " or " + to)
}

func (p *parameters) handoverClaims(pairs []*pair) []experiment.Claim {
	claims := []experiment.Claim{p.nothingLost(pairs)}
	for _, names := range [][2]string{{"802.11b", "802.11b"}, {"802.11g", "802.11g"}, {"802.11b", "802.11g"}} {
		x := p.find(pairs, names[0], names[1])
		t, f, l := p.summary(x.runs[plain]), p.summary(x.runs[frozen]), p.summary(x.runs[frozenLCI])
		claims = append(claims, experiment.Claim{
			Name:  "waste " + p.name(x),
			Paper: "greatly reduced; at least ten times less is asked for",
			Ours:  fmt.Sprintf("tfrc %.0f, freeze %.0f (%.1f times less), with LCI %.0f (%.1f times less)", t.wasted, f.wasted, t.wasted/f.wasted, l.wasted, t.wasted/l.wasted),
			Holds: t.wasted >= 10*f.wasted,
		})
	}
	claims = append(claims,
		p.compared(pairs, "with LCI less waste than TFRC in every pair", "beyond the paper, which has two pairs with more", func(t, l summary) bool { return l.wasted < t.wasted },
			func(m summary) string { return fmt.Sprintf("%.1f", m.wasted) }),
		p.compared(pairs, "with LCI at least as many packets delivered in 20 s in every pair", "beyond the paper", func(t, l summary) bool { return l.delivered >= t.delivered },
			func(m summary) string { return fmt.Sprintf("%.1f", m.delivered) }),
	)
	for _, names := range [][2]string{{"UMTS", "802.11b"}, {"802.11g", "802.16"}} {
		claims = append(claims, p.pathological(p.find(pairs, names[0], names[1])))
	}
	return append(claims, restartClaim(p.summary(p.find(pairs, "802.11b", "802.11b").runs[plain])))
}

func (p *parameters) nothingLost(pairs []*pair) experiment.Claim {
	most, where := 0, ""
	for _, x := range pairs {
		for _, v := range []variant{frozen, frozenLCI} {
			if m := p.summary(x.runs[v]); m.mostLost > most {
				most, where = m.mostLost, " ("+p.name(x)+")"
			}
		}
	}
	return experiment.Claim{
		Name: "Freeze loses no packet while the link is down", Paper: "did not lose any packet",
		Ours: fmt.Sprintf("most of any run: %d%s", most, where), Holds: most == 0,
	}
}

// compared is a claim on TFRC and Freeze with LCI that must hold in every pair.
func (p *parameters) compared(pairs []*pair, name, paper string, holds func(t, l summary) bool, show func(summary) string) experiment.Claim {
	var not []string
	for _, x := range pairs {
		if t, l := p.summary(x.runs[plain]), p.summary(x.runs[frozenLCI]); !holds(t, l) {
			not = append(not, fmt.Sprintf("%s (tfrc %s, with LCI %s)", p.name(x), show(t), show(l)))
		}
	}
	c := experiment.Claim{Name: name, Paper: paper, Ours: fmt.Sprintf("in %d of %d", len(pairs)-len(not), len(pairs)), Holds: len(not) == 0}
	if len(not) > 0 {
		c.Note = "not in " + strings.Join(not, ", ")
	}
	return c
}

func (p *parameters) pathological(x *pair) experiment.Claim {
	t, f, l := p.summary(x.runs[plain]), p.summary(x.runs[frozen]), p.summary(x.runs[frozenLCI])
	return experiment.Claim{
		Name:  p.name(x) + ": better than TFRC with LCI",
		Paper: "more waste with Freeze than with TFRC",
		Ours: fmt.Sprintf("wasted: tfrc %.0f, freeze %.0f, with LCI %.0f; delivered: %.0f, %.0f, %.0f",
			t.wasted, f.wasted, l.wasted, t.delivered, f.delivered, l.delivered),
		Holds: l.wasted < t.wasted && l.delivered >= t.delivered,
		Note:  fmt.Sprintf("the paper's own fault %s here without LCI", map[bool]string{true: "shows", false: "doesn't show"}[f.wasted > t.wasted || f.delivered < t.delivered]),
	}
}

// handoverPlots are figure 8: the allowed rate around some hand-overs, and the waste of all.
func (p *parameters) handoverPlots(pairs []*pair) []experiment.Plot {
	waste := experiment.Plot{Name: "wasted", Title: "Wasted capacity by hand-over", Y: "packets", LogY: true}
	for v := range variants {
		waste.Lines = append(waste.Lines, experiment.Line{Name: v.String()})
	}
	for _, x := range pairs {
		waste.Bars = append(waste.Bars, p.name(x))
		for v := range variants {
			l := &waste.Lines[v]
			l.Points = append(l.Points, experiment.Point{Y: p.summary(x.runs[v]).wasted})
		}
	}
	plots := []experiment.Plot{waste}
	for _, names := range [][2]string{{"802.11b", "802.11b"}, {"802.11b", "802.11g"}, {"UMTS", "802.11b"}, {"802.11g", "802.16"}} {
		x := p.find(pairs, names[0], names[1])
		plots = append(plots, p.ratePlot(x))
	}
	return plots
}

func (p *parameters) ratePlot(x *pair) experiment.Plot {
	file := strings.NewReplacer(".", "", "→", "-to-").Replace(strings.ToLower(p.name(x)))
	plot := experiment.Plot{Name: file, Title: p.name(x), X: "s from the reconnection", Y: "allowed rate, Mbit/s"}
	for v := range variants {
		plot.Lines = append(plot.Lines, experiment.Line{Name: v.String(), Points: steps(x.runs[v][0].rates, -5*time.Second, 20*time.Second)})
	}
	return plot
}

// steps draws a value that holds until the next one, between two moments.
func steps(points []experiment.Point, from, to time.Duration) []experiment.Point {
	var all []experiment.Point
	for i, pt := range points {
		if pt.X < from.Seconds() || pt.X > to.Seconds() {
			continue
		}
		if i > 0 && len(all) > 0 {
			all = append(all, experiment.Point{X: pt.X, Y: points[i-1].Y})
		}
		all = append(all, pt)
	}
	return all
}
