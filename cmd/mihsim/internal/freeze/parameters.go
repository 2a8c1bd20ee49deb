package freeze

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"mihf.dev/integration/sim"
	"mihf.dev/mihf"
	"mihf.dev/transports/tfrc"
)

//go:embed parameters.toml
var parametersFile string

// parameters are what the experiments assume: parameters.toml, which says what each is.
type parameters struct {
	TFRC struct {
		Variant              string
		SegmentBytes         int     `toml:"segment_bytes"`
		HeaderBytes          int     `toml:"header_bytes"`
		FeedbackBytes        int     `toml:"feedback_bytes"`
		OscillationReduction bool    `toml:"oscillation_reduction"`
		GranularitySeconds   float64 `toml:"timer_granularity_s"`
	}
	Path struct {
		QueuePackets      int     `toml:"queue_packets"`
		FirstRateBPS      int64   `toml:"first_rate_bps"`
		FirstDelaySeconds float64 `toml:"first_delay_s"`
	}
	Technology []technology
	Handover   struct {
		BindingSeconds     float64 `toml:"binding_s"`
		JitterRTTs         float64 `toml:"jitter_rtts"`
		UnfreezeSeconds    float64 `toml:"unfreeze_s"`
		MeasuredSeconds    float64 `toml:"measured_s"`
		WastedLimitSeconds float64 `toml:"wasted_limit_s"`
		DeliveredSeconds   float64 `toml:"delivered_s"`
		Restored           float64
	}
	Model struct {
		RatesBPS      []int64   `toml:"rates_bps"`
		RTTsSeconds   []float64 `toml:"rtts_s"`
		BreaksSeconds []float64 `toml:"breaks_s"`
		FromSeconds   float64   `toml:"from_s"`
		ToSeconds     float64   `toml:"to_s"`
		StepSeconds   float64   `toml:"step_s"`
	}
	Motivation struct {
		Technology string
		CellMetres float64   `toml:"cell_m"`
		SpeedsMPS  []float64 `toml:"speeds_mps"`
	}
	Fairness struct {
		SettleSeconds   float64 `toml:"settle_s"`
		AveragedSeconds float64 `toml:"averaged_s"`
		SegmentBytes    int     `toml:"tcp_segment_bytes"`
		MinRTOSeconds   float64 `toml:"tcp_min_rto_s"`
		DelayedAcks     bool    `toml:"tcp_delayed_acks"`
	}
	QoE struct {
		VideoBPS       int     `toml:"video_bps"`
		FramesPerS     int     `toml:"frames_per_s"`
		PlayoutSeconds float64 `toml:"playout_s"`
		VisitSeconds   float64 `toml:"visit_s"`
		SenderQueue    int     `toml:"sender_queue_packets"`
		IntactDB       float64 `toml:"psnr_intact_db"`
		NoiseDB        float64 `toml:"psnr_noise_db"`
		Conceal        float64 `toml:"psnr_conceal"`
		AverageFrames  int     `toml:"average_frames"`
		Visit          []technology
	}
}

// A technology is a kind of last link.
type technology struct {
	Name          string
	RateBPS       int64   `toml:"rate_bps"`
	DelaySeconds  float64 `toml:"delay_s"`
	SettleSeconds float64 `toml:"settle_s"`
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// load reads the file that is part of the program.
func load() (*parameters, error) {
	p := &parameters{}
	if err := toml.NewDecoder(strings.NewReader(parametersFile)).DisallowUnknownFields().Decode(p); err != nil {
		return nil, fmt.Errorf("parameters of the freeze experiments: %w", err)
	}
	if _, err := p.variant(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *parameters) variant() (tfrc.Variant, error) {
	for _, v := range []tfrc.Variant{tfrc.RFC5348, tfrc.CCID3} {
		if v.String() == p.TFRC.Variant {
			return v, nil
		}
	}
	return 0, fmt.Errorf("parameters of the freeze experiments: tfrc.variant %q: want rfc5348 or ccid3", p.TFRC.Variant)
}

// flow describes a TFRC flow.
func (p *parameters) flow() sim.TFRCConfig {
	v, _ := p.variant() // load has checked it
	return sim.TFRCConfig{
		Flow: 1, SegmentBytes: p.TFRC.SegmentBytes, HeaderBytes: p.TFRC.HeaderBytes, FeedbackBytes: p.TFRC.FeedbackBytes,
		Sender: tfrc.SenderConfig{
			Variant: v, NoOscillationReduction: !p.TFRC.OscillationReduction, Granularity: seconds(p.TFRC.GranularitySeconds),
		},
		Receiver: tfrc.ReceiverConfig{Variant: v, FirstSeq: 1},
	}
}

// A path is sender - router - receiver, and back.
type path struct {
	down, up      *sim.Link // the last link, towards the receiver and back
	forward, back []sim.Hop
}

func (p *parameters) path(s *sim.Sim, t technology) path {
	link := func(name string, rate int64, delay float64) *sim.Link {
		return sim.NewLink(s, sim.LinkConfig{Name: name, RateBPS: rate, Delay: seconds(delay), QueuePackets: p.Path.QueuePackets})
	}
	x := path{down: link("down", t.RateBPS, t.DelaySeconds), up: link("up", t.RateBPS, t.DelaySeconds)}
	x.forward = []sim.Hop{link("first-down", p.Path.FirstRateBPS, p.Path.FirstDelaySeconds), x.down}
	x.back = []sim.Hop{x.up, link("first-up", p.Path.FirstRateBPS, p.Path.FirstDelaySeconds)}
	return x
}

// handover takes the last link away at a moment, for a while, and brings another in its place.
func (x path) handover(at, outage time.Duration, to technology) {
	for _, l := range []*sim.Link{x.down, x.up} {
		l.Schedule(
			sim.Change{At: at, Down: true},
			sim.Change{At: at + outage, Up: true, RateBPS: to.RateBPS, Delay: seconds(to.DelaySeconds)},
		)
	}
}

// thaw is what is told at an Unfreeze: nothing of the new link, or its characteristics.
func (p *parameters) thaw(to technology, lci bool) tfrc.Thaw {
	if !lci {
		return tfrc.Thaw{}
	}
	known := func(v float64) mihf.Characteristic {
		return mihf.Characteristic{Value: v, Source: mihf.SourceMeasured, At: 1, Confidence: 1}
	}
	c := mihf.LCI{
		CapacityDownBPS: known(float64(to.RateBPS)),
		RTTSeconds:      known(2 * (to.DelaySeconds + p.Path.FirstDelaySeconds)),
	}
	return tfrc.Thaw{Path: tfrc.PathFrom(&c, false, float64(p.TFRC.SegmentBytes), float64(p.TFRC.HeaderBytes))}
}
