package score

import (
	"math"
	"slices"
	"sort"
)

// Tally is what became of alarms with one horizon.
type Tally struct {
	Events  int
	Hits    int // events with an alarm in time
	Late    int // alarms less than MinLead before their event
	False   int
	Leads   []float64 // of the hits, seconds
	Seconds float64   // judged
}

// Alarms judges the moments at which an alarm stood, rising, in seconds from the start,
// for one horizon in seconds.
func (t *Trace) Alarms(alarms []float64, horizon float64) Tally {
	var r Tally
	for _, s := range t.Spans {
		r.Seconds += s.To - s.From
	}
	for _, s := range t.segments() {
		r.segment(s, alarms, horizon)
	}
	return r
}

// segment is judged time with the event that ends it, if one does.
type segment struct {
	Span
	event float64
	ends  bool
}

func (t *Trace) segments() []segment {
	var all []segment
	for _, s := range t.Spans {
		from := s.From
		for _, e := range t.Events {
			if s.From < e && e < s.To {
				all = append(all, segment{Span{from, e}, e, true})
				from = e
			}
		}
		last := segment{Span: Span{from, s.To}}
		i := sort.SearchFloat64s(t.Events, s.To-1e-6)
		if i < len(t.Events) && t.Events[i]-s.To <= endLag {
			last.event, last.ends = t.Events[i], true
		}
		all = append(all, last)
	}
	return all
}

func (r *Tally) segment(s segment, alarms []float64, horizon float64) {
	if s.ends {
		r.Events++
	}
	i := sort.SearchFloat64s(alarms, s.From)
	for i < len(alarms) && alarms[i] <= s.To {
		at := alarms[i]
		if s.ends && at <= s.event && s.event <= at+horizon {
			if lead := s.event - at; lead >= MinLead {
				r.Hits++
				r.Leads = append(r.Leads, lead)
			} else {
				r.Late++
			}
			return
		}
		if !s.ends && at+horizon > s.To {
			return // pending when judging stops
		}
		r.False++
		i += 1 + sort.SearchFloat64s(alarms[i+1:], at+horizon-1e-9)
	}
}

// Add adds what another trace gave.
func (r *Tally) Add(o *Tally) {
	r.Events += o.Events
	r.Hits += o.Hits
	r.Late += o.Late
	r.False += o.False
	r.Leads = append(r.Leads, o.Leads...)
	r.Seconds += o.Seconds
}

// Precision is the share of the alarms that were right; 0 without any.
func (r *Tally) Precision() float64 { return share(r.Hits, r.Hits+r.False) }

// Recall is the share of the events that were announced; 0 without any.
func (r *Tally) Recall() float64 { return share(r.Hits, r.Events) }

// F1 is the harmonic mean of precision and recall.
func (r *Tally) F1() float64 {
	p, q := r.Precision(), r.Recall()
	if p+q == 0 {
		return 0
	}
	return 2 * p * q / (p + q)
}

// FalsePerHour is how many false alarms an hour of judged time had.
func (r *Tally) FalsePerHour() float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(r.False) / r.Seconds * 3600
}

// Lead returns a quantile of the lead times; NaN without any.
func (r *Tally) Lead(q float64) float64 {
	if len(r.Leads) == 0 {
		return math.NaN()
	}
	l := slices.Sorted(slices.Values(r.Leads))
	return l[min(len(l)-1, int(q*float64(len(l))))]
}

func share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
