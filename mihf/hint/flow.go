package hint

import (
	"time"

	"mihf.dev/mihf"
)

// Config holds the defaults and bounds of the policy. [Defaults] gives the ones in force
// without configuration.
type Config struct {
	RTT        time.Duration // of a flow that gives none
	LocalDrain time.Duration // of a flow that gives none
	Recovery   time.Duration // of a flow that gives none
	Lease      time.Duration // above 0
	MaxFreeze  time.Duration // of a flow that gives none, and the upper bound
	MinMargin  time.Duration // dispatch margin before it is measured, and its lower bound
	MaxMargin  time.Duration

	BudgetShare  float64
	BudgetWindow time.Duration
	Backoff      time.Duration // after the first freeze that was needless; doubles
	MaxBackoff   time.Duration
}

// Defaults returns the configuration in force where nothing is configured.
func Defaults() Config {
	return Config{
		RTT:          100 * time.Millisecond,
		LocalDrain:   10 * time.Millisecond,
		Recovery:     time.Second,
		Lease:        3 * time.Second,
		MaxFreeze:    60 * time.Second,
		MinMargin:    5 * time.Millisecond,
		MaxMargin:    500 * time.Millisecond,
		BudgetShare:  0.02,
		BudgetWindow: 10 * time.Minute,
		Backoff:      2 * time.Second,
		MaxBackoff:   5 * time.Minute,
	}
}

// flow is the policy's state of one flow.
type flow struct {
	spec   mihf.FlowSpec
	owner  uint32
	margin *margin // of the owner
	link   mihf.LinkID
	at     int // place in Policy.order
	on     int // place in Policy.links[link]
	epoch  uint64

	measured measured

	frozen     bool
	since      mihf.Time
	prediction mihf.PredictionID // zero: a late freeze
	figures    figures
	waits      bool // for a usable path: the loss has come, or the flow left the link
	booked     bool // its time is in needless already
	renewAt    mihf.Time
	leaseEnd   mihf.Time
	budgetEnd  mihf.Time // when the budget ends this freeze; zero once it waits
	prepared   mihf.PredictionID
	abandoned  bool

	account

	acked   uint64
	lastAck mihf.AckResult
}

// figures are a prediction's quantiles of the time to the loss, and when they were true.
type figures struct {
	p10, p50, p90 time.Duration
	at            mihf.Time
}

func figuresOf(now mihf.Time, p *mihf.Prediction) figures {
	return figures{p10: p.P10, p50: p.P50, p90: p.P90, at: now}
}

// left returns what is left of a quantile; not 0, which would say that the loss has come.
func (g *figures) left(now mihf.Time, q time.Duration) time.Duration {
	return max(q-now.Sub(g.at), time.Millisecond)
}

// rtt returns the RTT in force: the transport's word, else what is measured.
func (f *flow) rtt(cfg *Config) time.Duration {
	switch f.rttSource() {
	case mihf.RTTStated:
		return f.spec.RTT
	case mihf.RTTMeasured:
		return f.measured.rtt
	default:
		return cfg.RTT
	}
}

func (f *flow) rttSource() mihf.RTTSource {
	switch {
	case f.spec.RTT > 0:
		return mihf.RTTStated
	case f.measured.rtt > 0:
		return mihf.RTTMeasured
	default:
		return mihf.RTTAssumed
	}
}

// lead returns how long before the loss the flow must be frozen.
func (f *flow) lead(cfg *Config, margin time.Duration) time.Duration {
	if f.spec.Lead > 0 {
		return f.spec.Lead
	}
	receive := f.rtt(cfg) + margin
	send := cfg.LocalDrain + margin
	if f.spec.LocalDrain > 0 {
		send = f.spec.LocalDrain + margin
	}
	switch f.spec.Direction {
	case mihf.DirectionReceive:
		return receive
	case mihf.DirectionSend:
		return send
	default:
		return max(receive, send)
	}
}

func (f *flow) maxFreeze(cfg *Config) time.Duration {
	if f.spec.MaxFreeze > 0 {
		return min(f.spec.MaxFreeze, cfg.MaxFreeze)
	}
	return cfg.MaxFreeze
}

func (f *flow) costMiss(cfg *Config) time.Duration {
	if f.spec.CostMiss > 0 {
		return f.spec.CostMiss
	}
	if f.spec.Recovery > 0 {
		return f.rtt(cfg) + f.spec.Recovery
	}
	return f.rtt(cfg) + cfg.Recovery
}

func (f *flow) takes(k mihf.HintKind) bool {
	return f.spec.Hints == 0 || f.spec.Hints.Has(k)
}

// mayFreeze reports whether a freeze could help the flow at all.
func (f *flow) mayFreeze() bool {
	return !f.frozen && !f.abandoned && f.takes(mihf.HintFreeze) && f.spec.Continuity != mihf.ContinuityNone
}

// wait makes a freeze last until the flow's path is usable.
func (f *flow) wait() { f.waits, f.budgetEnd = true, 0 }

// book takes the time frozen so far from the budget: not longer than the lease, at which
// the flow thaws alone.
func (f *flow) book(now mihf.Time) {
	f.needless.add(now, min(now, f.leaseEnd).Sub(f.since))
	f.booked = true
}

// next returns the flow's own deadline.
func (f *flow) next(cfg *Config) mihf.Time {
	if !f.frozen {
		return 0
	}
	t := mihf.Sooner(f.renewAt, f.since.Add(f.maxFreeze(cfg)))
	return mihf.Sooner(t, f.budgetEnd)
}

// spending remembers how long the flow was frozen needlessly, in the budget's window.
type spending struct {
	spans [32]span // newest last; when full the two oldest are joined
	n     int
}

type span struct {
	end  mihf.Time
	long time.Duration
}

func (s *spending) add(end mihf.Time, long time.Duration) {
	if s.n == len(s.spans) {
		s.spans[1].long += s.spans[0].long
		copy(s.spans[:], s.spans[1:])
		s.n--
	}
	s.spans[s.n] = span{end, long}
	s.n++
}

// within returns the time spent in the window before now.
func (s *spending) within(now mihf.Time, window time.Duration) time.Duration {
	var sum time.Duration
	from := now.Add(-window)
	for _, x := range s.spans[:s.n] {
		if x.end.Before(from) {
			continue
		}
		sum += min(x.long, x.end.Sub(from))
	}
	return sum
}
