package freeze

import (
	"context"
	"fmt"

	"mihf.dev/cmd/mihsim/internal/experiment"
	"mihf.dev/integration/sim"
	"mihf.dev/mihf"
)

// stationary is what a flow settles to on a link (the paper's Table 3).
type stationary struct {
	rate     float64 // received, bytes/s
	allowed  float64 // X, bytes/s
	rtt      float64 // R, s
	lossRate float64 // p
}

func (p *parameters) stationaryRun(seed uint64, t technology) stationary {
	s := sim.New(seed)
	x := p.path(s, t)
	f := sim.NewTFRCFlow(s, p.flow(), x.forward, x.back)
	from, length := seconds(t.SettleSeconds), seconds(p.Handover.MeasuredSeconds)
	var allowed, rtt, loss []float64
	packets := 0
	f.OnRate = func(now mihf.Time) {
		if sim.Since(now) >= from {
			allowed = append(allowed, float64(f.Sender.Rate()))
			rtt = append(rtt, f.Sender.RTT().Seconds())
			loss = append(loss, f.Sender.LossRate())
		}
	}
	f.OnDeliver = func(now mihf.Time, _ *sim.Packet, _ uint64) {
		if sim.Since(now) >= from {
			packets++
		}
	}
	f.Start(0)
	s.Run(from + length)
	return stationary{
		rate:    float64(packets*p.TFRC.SegmentBytes) / length.Seconds(),
		allowed: experiment.Mean(allowed), rtt: experiment.Mean(rtt), lossRate: experiment.Mean(loss),
	}
}

// stationaries measures every technology; the result has their order.
func (p *parameters) stationaries(ctx context.Context, o experiment.Options) ([]stationary, error) {
	all := make([]stationary, len(p.Technology)*o.Runs)
	err := experiment.Each(ctx, o, len(all), func(part int) error {
		all[part] = p.stationaryRun(o.SeedOf(part%o.Runs), p.Technology[part/o.Runs])
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("stationary flows: %w", err)
	}
	means := make([]stationary, len(p.Technology))
	for i, v := range all {
		m, n := &means[i/o.Runs], float64(o.Runs)
		m.rate += v.rate / n
		m.allowed += v.allowed / n
		m.rtt += v.rtt / n
		m.lossRate += v.lossRate / n
	}
	return means, nil
}

// stationaryRows are the rows of the paper's Table 3.
func (p *parameters) stationaryRows(all []stationary) []experiment.Row {
	var rows []experiment.Row
	for i, v := range all {
		rows = append(rows, experiment.Row{
			{Name: "table", Value: "3"},
			{Name: "link", Value: p.Technology[i].Name},
			{Name: "received_bytes_per_s", Value: experiment.Round(v.rate, 0)},
			{Name: "allowed_bytes_per_s", Value: experiment.Round(v.allowed, 0)},
			{Name: "rtt_s", Value: experiment.Round(v.rtt, 4)},
			{Name: "loss_event_rate", Value: experiment.Round(v.lossRate, 7)},
		})
	}
	return rows
}
