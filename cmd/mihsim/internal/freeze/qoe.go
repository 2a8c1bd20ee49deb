package freeze

import (
	"context"
	"fmt"
	"math"
	"time"

	"mihf.dev/cmd/mihsim/internal/experiment"
	"mihf.dev/integration/sim"
	"mihf.dev/mihf"
)

// viewing is what a viewer saw: by frame the moving average of the PSNR and the share of packets
// that came in time, and when each visit's link was there.
type viewing struct {
	psnr, share []float64
	visits      []time.Duration // from the begin of the video
}

// view runs the walk of figure 9 once.
func (p *parameters) view(seed uint64, v variant) viewing {
	s := sim.New(seed)
	x := p.path(s, p.QoE.Visit[0])
	film := &video{p: p, begin: sim.Moment(seconds(s.Rand("video").Float64()))}
	c := p.flow()
	c.Source = film
	f := sim.NewTFRCFlow(s, c, x.forward, x.back)
	f.OnDeliver = func(now mihf.Time, _ *sim.Packet, tag uint64) { film.arrived(now, tag) }
	seen := viewing{visits: []time.Duration{0}}
	r := s.Rand("break")
	for i := 1; i < len(p.QoE.Visit); i++ {
		to := p.QoE.Visit[i]
		base := 2 * (to.DelaySeconds + p.Path.FirstDelaySeconds)
		leave := crossing{
			to: to, variant: v, outage: seconds(p.Handover.BindingSeconds + base),
			at: seconds(float64(i)*p.QoE.VisitSeconds + r.Float64()*p.Handover.JitterRTTs*base),
		}
		x.handover(leave.at, leave.outage, to)
		p.tell(s, f, leave)
		seen.visits = append(seen.visits, leave.at+leave.outage-sim.Since(film.begin))
	}
	end := seconds(float64(len(p.QoE.Visit)) * p.QoE.VisitSeconds)
	var frame *sim.Timer
	frame = s.Timer(func(mihf.Time) {
		film.next()
		f.Wake()
		if at := film.captured(film.frames); sim.Since(at)+seconds(p.QoE.PlayoutSeconds) < end {
			frame.Set(at)
		}
	})
	f.Start(0)
	frame.Set(film.begin)
	s.Run(end)
	seen.psnr = average(film.psnr(), p.QoE.AverageFrames)
	for i := range film.frames {
		seen.share = append(seen.share, film.share(i))
	}
	seen.share = average(seen.share, p.QoE.AverageFrames)
	return seen
}

// visit is what the variants showed in a visit, means over runs.
type visit struct {
	psnr, lowest, share, recovery float64
}

// visited sums up a visit from when its link was there to the next break.
func (p *parameters) visited(all []viewing, i int) visit {
	var m visit
	n := float64(len(all))
	could := p.carries(p.QoE.Visit[i])
	for _, x := range all {
		from := int(x.visits[i].Seconds() * float64(p.QoE.FramesPerS))
		to := min(int(float64(i+1)*p.QoE.VisitSeconds-1)*p.QoE.FramesPerS, len(x.psnr))
		m.psnr += experiment.Mean(x.psnr[from:to]) / n
		m.share += experiment.Mean(x.share[from:to]) / n
		low, recovered := math.Inf(1), float64(to-from)/float64(p.QoE.FramesPerS)
		// The first second's average holds frames from before.
		for frame := min(from+p.QoE.AverageFrames, to); frame < to; frame++ {
			low = min(low, x.psnr[frame])
			if x.share[frame] >= 0.9*could {
				recovered = min(recovered, float64(frame-from)/float64(p.QoE.FramesPerS))
			}
		}
		m.lowest += low / n
		m.recovery += recovered / n
	}
	return m
}

// carries is the share of the video that a link has room for.
func (p *parameters) carries(t technology) float64 {
	payload := float64(t.RateBPS) * float64(p.TFRC.SegmentBytes) / float64(p.TFRC.SegmentBytes+p.TFRC.HeaderBytes)
	return min(1, payload/float64(p.QoE.VideoBPS))
}

func runQoE(ctx context.Context, o experiment.Options) (*experiment.Result, error) {
	p, err := load()
	if err != nil {
		return nil, err
	}
	var runs [variants][]viewing
	for v := range runs {
		runs[v] = make([]viewing, o.Runs)
	}
	err = experiment.Each(ctx, o, int(variants)*o.Runs, func(part int) error {
		runs[part/o.Runs][part%o.Runs] = p.view(o.SeedOf(part%o.Runs), variant(part/o.Runs))
		return nil
	})
	if err != nil {
		return nil, err
	}
	r := &experiment.Result{Plots: p.qoePlots(runs)}
	var seen [variants][]visit
	for i, t := range p.QoE.Visit {
		for v := range variants {
			m := p.visited(runs[v], i)
			seen[v] = append(seen[v], m)
			r.Rows = append(r.Rows, experiment.Row{
				{Name: "visit", Value: i},
				{Name: "network", Value: t.Name},
				{Name: "variant", Value: v.String()},
				{Name: "in_time_share", Value: experiment.Round(m.share, 3)},
				{Name: "link_share", Value: experiment.Round(p.carries(t), 3)},
				{Name: "psnr_db", Value: experiment.Round(m.psnr, 2)},
				{Name: "lowest_psnr_db", Value: experiment.Round(m.lowest, 2)},
				{Name: "recovery_s", Value: experiment.Round(m.recovery, 2)},
			})
		}
	}
	r.Claims = p.qoeClaims(seen)
	return r, nil
}

func (p *parameters) qoeClaims(seen [variants][]visit) []experiment.Claim {
	lowest, slowest := math.Inf(1), 0.0
	for _, m := range seen[plain][1:] {
		lowest, slowest = min(lowest, m.lowest), max(slowest, m.recovery)
	}
	return []experiment.Claim{
		p.pictureClaim(seen, frozen), p.pictureClaim(seen, frozenLCI),
		{
			Name: "TFRC's picture falls to noise", Paper: "to a minimum of 7 dB", Ours: fmt.Sprintf("lowest moving average %.1f dB", lowest),
			Holds: lowest <= p.QoE.NoiseDB+1,
		},
		{
			Name: "TFRC takes long to recover", Paper: "up to the whole visit", Ours: fmt.Sprintf("at the longest %.1f s of %.0f", slowest, p.QoE.VisitSeconds),
			Holds: slowest >= 0.9*(p.QoE.VisitSeconds-5),
		},
	}
}

// pictureClaim is figure 10: after each hand-over the picture is better and steadier than TFRC's.
func (p *parameters) pictureClaim(seen [variants][]visit, v variant) experiment.Claim {
	better, steadier, moves := 0, 0, len(p.QoE.Visit)-1
	for i := 1; i <= moves; i++ {
		t, f := seen[plain][i], seen[v][i]
		if f.psnr > t.psnr {
			better++
		}
		if f.psnr-f.lowest < t.psnr-t.lowest {
			steadier++
		}
	}
	return experiment.Claim{
		Name: "the picture after each hand-over, " + v.String(), Paper: "a reduced but stable quality",
		Ours:  fmt.Sprintf("better on average than TFRC's in %d of %d, steadier in %d", better, moves, steadier),
		Holds: better == moves && steadier == moves,
	}
}

// qoePlots is figure 10: the moving average of the PSNR, mean over the runs.
func (p *parameters) qoePlots(runs [variants][]viewing) []experiment.Plot {
	plot := experiment.Plot{Name: "figure10", Title: "What a viewer sees on the way", X: "s", Y: "PSNR, dB"}
	for v := range variants {
		line := experiment.Line{Name: v.String()}
		frames := math.MaxInt
		for _, x := range runs[v] {
			frames = min(frames, len(x.psnr))
		}
		for frame := range frames {
			sum := 0.0
			for _, x := range runs[v] {
				sum += x.psnr[frame]
			}
			line.Points = append(line.Points, experiment.Point{X: float64(frame) / float64(p.QoE.FramesPerS), Y: sum / float64(len(runs[v]))})
		}
		plot.Lines = append(plot.Lines, line)
	}
	return []experiment.Plot{plot}
}
