package freeze

import (
	"context"
	"fmt"
	"math"
	"time"

	"mihf.dev/cmd/mihsim/internal/experiment"
)

// gap is a break of the motivation: figure 3's hand-over, or figure 4's cell without network.
type gap struct {
	figure string
	length time.Duration
}

func (p *parameters) gaps(s stationary) []gap {
	all := []gap{{"3", seconds(p.Handover.BindingSeconds + s.rtt)}}
	for _, v := range p.Motivation.SpeedsMPS {
		all = append(all, gap{"4", seconds(p.Motivation.CellMetres / v)})
	}
	return all
}

// motivationLimit is how long a rate is waited for: the paper's figure 4 shows a minute and more.
const motivationLimit = 2 * time.Minute

func runMotivation(ctx context.Context, o experiment.Options) (*experiment.Result, error) {
	p, err := load()
	if err != nil {
		return nil, err
	}
	cell := p.technologyOf(p.Motivation.Technology)
	all, err := p.stationaries(ctx, o)
	if err != nil {
		return nil, err
	}
	gaps := p.gaps(all[cell])
	runs := make([]outcome, len(gaps)*o.Runs)
	err = experiment.Each(ctx, o, len(runs), func(part int) error {
		g, run := gaps[part/o.Runs], part%o.Runs
		c := p.crossingOf(o.SeedOf(run), cell, cell, plain, all)
		c.outage, c.limit, c.record = g.length, motivationLimit, run == 0
		runs[part] = p.cross(o.SeedOf(run), c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	r := &experiment.Result{}
	longest := 0.0
	for i, g := range gaps {
		of := runs[i*o.Runs : (i+1)*o.Runs]
		m := p.summary(of)
		worst, restored := 0.0, []float64{}
		for _, x := range of {
			worst = max(worst, x.first)
			if !math.IsNaN(x.restored) {
				restored = append(restored, x.restored)
			}
		}
		if g.figure == "4" {
			longest = max(longest, worst)
		}
		r.Rows = append(r.Rows, experiment.Row{
			{Name: "table", Value: "figure " + g.figure},
			{Name: "break_s", Value: experiment.Round(g.length.Seconds(), 3)},
			{Name: "lost_down", Value: experiment.Round(m.lostDown, 1)},
			{Name: "restart_s", Value: experiment.Round(m.first, 3)},
			{Name: "longest_restart_s", Value: experiment.Round(worst, 3)},
			{Name: "restored_s", Value: experiment.Round(experiment.Mean(restored), 3)},
			{Name: "not_restored_runs", Value: m.unrestored},
		})
		r.Plots = append(r.Plots, experiment.Plot{
			Name: fmt.Sprintf("figure%s-%.0fs", g.figure, g.length.Seconds()), Title: fmt.Sprintf("TFRC after a break of %.0f s", g.length.Seconds()),
			X: "s from the reconnection", Y: "allowed rate, Mbit/s",
			Lines: []experiment.Line{{Name: plain.String(), Points: steps(of[0].rates, -g.length-2*time.Second, motivationLimit)}},
		})
	}
	r.Claims = []experiment.Claim{restartClaim(p.summary(runs[:o.Runs])), {
		Name: "figure 4: TFRC after a cell without network", Paper: "the restart takes up to 50 s",
		Ours:  fmt.Sprintf("up to %.0f s", longest),
		Holds: longest >= 25 && longest <= 64,
		Note:  "holds from half of the paper's to the 64 s that a sender waits at most; it depends on how long the cell takes, which the paper doesn't say",
	}}
	return r, nil
}

// restartClaim is figure 3.
func restartClaim(t summary) experiment.Claim {
	return experiment.Claim{
		Name:  "TFRC between 802.11b cells: restart and restored rate",
		Paper: "restarts 100 ms after the address is configured, restored after 500 ms (figure 3)",
		Ours:  fmt.Sprintf("first packet after %.0f ms, 95 %% of the rate after %.0f ms", t.first*1000, t.restored*1000),
		Holds: t.first >= 0.05 && t.first <= 0.2 && t.restored >= 0.25 && t.restored <= 1,
		Note:  "holds within a factor of two",
	}
}

func (p *parameters) technologyOf(name string) int {
	for i, t := range p.Technology {
		if t.Name == name {
			return i
		}
	}
	panic("freeze: no technology is called " + name)
}
