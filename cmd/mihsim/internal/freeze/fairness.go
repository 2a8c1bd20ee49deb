package freeze

import (
	"context"
	"fmt"
	"math"

	"mihf.dev/cmd/mihsim/internal/experiment"
	"mihf.dev/integration/sim"
	"mihf.dev/integration/sim/tcp"
	"mihf.dev/mihf"
)

// rival is the TCP beside the flow.
type rival uint8

const (
	newReno rival = iota // RFC 6582
	cubic                // RFC 9438 with SACK
	rivals
)

func (r rival) String() string { return [...]string{"newreno", "cubic"}[r] }

func (p *parameters) tcp(r rival) sim.TCPConfig {
	c := sim.TCPConfig{Flow: 2, SegmentBytes: p.Fairness.SegmentBytes}
	c.Sender.MinRTO = seconds(p.Fairness.MinRTOSeconds)
	if !p.Fairness.DelayedAcks {
		c.Receiver.AckDelay = -1
	}
	if r == cubic {
		c.Sender.Recovery, c.Sender.Control = tcp.BySACK, tcp.NewCUBIC
	}
	return c
}

// shared is what the two flows got while their rates were averaged, in bytes of data.
type shared struct{ flow, tcp float64 }

// share runs both over a hand-over.
func (p *parameters) share(seed uint64, c crossing, r rival) shared {
	s := sim.New(seed)
	x := p.path(s, c.from)
	f := sim.NewTFRCFlow(s, p.flow(), x.forward, x.back)
	other := sim.NewTCPFlow(s, p.tcp(r), x.forward, x.back)
	x.handover(c.at, c.outage, c.to)
	p.tell(s, f, c)
	from := c.at + c.outage + seconds(p.Fairness.SettleSeconds)
	var got shared
	f.OnDeliver = func(now mihf.Time, _ *sim.Packet, _ uint64) {
		if sim.Since(now) >= from {
			got.flow += float64(p.TFRC.SegmentBytes)
		}
	}
	other.OnDeliver = func(now mihf.Time, n uint64) {
		if sim.Since(now) >= from {
			got.tcp += float64(n) * float64(p.TFRC.SegmentBytes)
		}
	}
	f.Start(0)
	other.Start(0)
	s.Run(from + seconds(p.Fairness.AveragedSeconds))
	return got
}

// Bounds of the ratio to TCP that counts as fair, and of its difference from plain TFRC's.
const (
	leastFair, mostFair = 0.3, 1.5
	likePlain           = 0.3
)

func runFairness(ctx context.Context, o experiment.Options) (*experiment.Result, error) {
	p, err := load()
	if err != nil {
		return nil, err
	}
	all, err := p.stationaries(ctx, o)
	if err != nil {
		return nil, err
	}
	n := len(p.Technology)
	cases := n * n * int(rivals) * int(variants)
	got := make([]shared, cases*o.Runs)
	err = experiment.Each(ctx, o, len(got), func(part int) error {
		k, seed := part/o.Runs, o.SeedOf(part%o.Runs)
		pair, r, v := k/int(rivals*rival(variants)), rival(k/int(variants))%rivals, variant(k)%variants
		got[part] = p.share(seed, p.crossingOf(seed, pair/n, pair%n, v, all), r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	res := &experiment.Result{}
	ratios := make([]float64, cases)
	plot := experiment.Plot{Name: "ratio", Title: "Rate beside TCP NewReno after a hand-over", Y: "ratio to TCP"}
	for v := range variants {
		plot.Lines = append(plot.Lines, experiment.Line{Name: v.String()})
	}
	for k := range cases {
		var mean shared
		for _, g := range got[k*o.Runs : (k+1)*o.Runs] {
			mean.flow += g.flow / float64(o.Runs)
			mean.tcp += g.tcp / float64(o.Runs)
		}
		ratios[k] = mean.flow / mean.tcp
		pair, r, v := k/int(rivals*rival(variants)), rival(k/int(variants))%rivals, variant(k)%variants
		kbps := func(bytes float64) float64 {
			return experiment.Round(bytes*8/1000/p.Fairness.AveragedSeconds, 1)
		}
		from, to := p.Technology[pair/n].Name, p.Technology[pair%n].Name
		res.Rows = append(res.Rows, experiment.Row{
			{Name: "from", Value: from},
			{Name: "to", Value: to},
			{Name: "tcp", Value: r.String()},
			{Name: "variant", Value: v.String()},
			{Name: "ratio", Value: experiment.Round(ratios[k], 3)},
			{Name: "flow_kbps", Value: kbps(mean.flow)},
			{Name: "tcp_kbps", Value: kbps(mean.tcp)},
		})
		if r == newReno {
			if v == plain {
				plot.Bars = append(plot.Bars, from+"→"+to)
			}
			plot.Lines[v].Points = append(plot.Lines[v].Points, experiment.Point{Y: ratios[k]})
		}
	}
	res.Plots = []experiment.Plot{plot}
	for r := range rivals {
		res.Claims = append(res.Claims, fairClaims(ratios, r)...)
	}
	return res, nil
}

// fairClaims are those of Table 7 beside one kind of TCP. ratios has, for each pair, those of all
// variants beside each rival.
func fairClaims(ratios []float64, r rival) []experiment.Claim {
	low, high, apart, inside, near, pairs := math.Inf(1), 0.0, 0.0, 0, 0, 0
	for k := int(r) * int(variants); k < len(ratios); k += int(rivals) * int(variants) {
		for _, v := range []variant{frozen, frozenLCI} {
			x := ratios[k+int(v)]
			d := math.Abs(x - ratios[k])
			low, high, apart = min(low, x), max(high, x), max(apart, d)
			pairs++
			if x >= leastFair && x <= mostFair {
				inside++
			}
			if d <= likePlain {
				near++
			}
		}
	}
	return []experiment.Claim{
		{
			Name: "Freeze beside TCP " + r.String(), Paper: "reasonably fair, in some cases too fair",
			Ours:  fmt.Sprintf("ratios from %.2f to %.2f; %d of %d within %.1f to %.1f", low, high, inside, pairs, leastFair, mostFair),
			Holds: inside == pairs,
		},
		{
			Name: "Freeze is as fair to TCP " + r.String() + " as plain TFRC", Paper: "the same is observed for regular TFRC",
			Ours:  fmt.Sprintf("%d of %d ratios differ by at most %.1f, the farthest by %.2f", near, pairs, likePlain, apart),
			Holds: near == pairs,
		},
	}
}
