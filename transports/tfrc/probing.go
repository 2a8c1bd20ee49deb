package tfrc

import "mihf.dev/mihf"

// A change is what a report says against the one before it.
type change struct {
	sent     mihf.Time // when the packet that it names was sent
	packets  uint64    // newly acknowledged or lost
	lossRate float64   // p before
	worse    bool      // p rose, or a loss event began
	limited  bool      // the sender was data-limited
}

// adapt is step 4 of RFC 5348, section 4.3, as the Freeze state changes it.
func (s *Sender) adapt(now mihf.Time, r *Report, c change) {
	f := &s.thawing
	whole := f.whole(r, c.sent, s.sampled)
	received := r.ReceiveRate
	if !whole {
		received = 0 // it says nothing, and leaves X_recv_set as it is
	}
	switch f.state {
	case Restoring:
		if s.restoring(now, r, c, whole) {
			return
		}
	case Probing:
		if !c.worse && !s.probed(r, c) {
			s.grow(now, r, c.limited)
			return
		}
	default: // as ever
	}
	s.settle()
	s.update(now, received, c.limited, c.worse)
}

// settle goes back to Normal.
func (s *Sender) settle() {
	if s.thawing.state != Frozen {
		s.thawing.state, s.thawing.until = Normal, 0
	}
}

// restoring takes a report while the old rate is restored, and tells whether that, or
// Probing after it, goes on. It ends with the first report that lies wholly after the
// restart, or that tells of a loss since.
func (s *Sender) restoring(now mihf.Time, r *Report, c change, whole bool) bool {
	f := &s.thawing
	event := r.Intervals.EventSeq(r.Seq)
	switch {
	case c.worse && (event == 0 || event >= f.restart):
		return false
	case !whole:
		s.setRate(s.x)
		return true
	case !r.Options.Has(OptUnfrozen):
		return false
	case s.lossRate == 0 && f.path.Capacity == 0: // slow-start goes on, and nothing bounds it
		return false
	}
	s.counts.Probes++
	f.state, f.until = Probing, 0
	f.grown, f.excess, f.steps = 0, 0, 0
	s.grow(now, r, false)
	return true
}

// probed tells whether a report ends Probing: p did not do what it does when nothing is
// lost. Each packet lengthens the current loss interval, which first does not count, and
// then lowers p by no more than its weight allows. Whether an interval is rounded to whole
// packets is not known: one more or less is no sign.
func (s *Sender) probed(r *Report, c change) bool {
	f := &s.thawing
	if s.lossRate <= 0 || c.lossRate <= 0 {
		return s.lossRate != c.lossRate
	}
	weight := 0.0
	for i := range min(max(r.Intervals.Len()-1, 0), historyLength) {
		weight += weights[i]
	}
	if weight == 0 { // the receiver tells only p
		weight = allWeights
	}
	was, is := 1/c.lossRate, 1/s.lossRate
	most := 1 / lossless(c.lossRate, float64(c.packets), weight)
	switch {
	case is > most+1, is < was-1:
		return true
	case is > was:
		f.sawDrop = true
		return false
	default: // unchanged, although it had counted before: a loss
		return f.sawDrop && most >= was+1
	}
}

// lossless is what p becomes when so many packets more arrive and none is lost, once the
// current interval counts.
func lossless(p, packets, weight float64) float64 {
	return p / (1 + p*packets/weight)
}

// grow raises the rate once a round-trip (RFC 5348's slow-start, although p > 0). From
// what the path is said to carry it goes on in small steps that double, for that may be
// wrong. When round-trip times show a queue, what has just arrived is what the path
// carries: it takes the place of what the loss history stood for on the path before.
func (s *Sender) grow(now mihf.Time, r *Report, limited bool) {
	f := &s.thawing
	if limited {
		s.xRecv.maximize(now, r.ReceiveRate)
	} else {
		s.xRecv.update(now, r.ReceiveRate, s.sampled)
	}
	if now.Sub(f.grown) < s.sampled {
		s.setRate(s.x)
		return
	}
	f.grown = now
	received := s.xRecv.max()
	x := 2 * s.x
	if c := f.path.Capacity; c > 0 && x > c {
		if s.x >= c && r.Intervals.Len() > 0 && s.queued(received) {
			s.plant(min(s.x, received))
			s.settle()
			s.reckon(now, 2*received)
			return
		}
		x = min(x, f.step(s.x))
	}
	x = max(min(x, 2*received), Rate(s.segment()/s.rtt.Seconds()))
	if limited {
		x = max(x, s.x)
	}
	if x > s.x {
		f.stalls = 0
	} else if f.stalls++; f.stalls >= stallRTTs {
		s.settle()
	}
	s.setRate(x)
}

// step is the next rate after x, at or above what the path is said to carry. The first
// excess stays for two round-trips, one to make a queue and one to see it, for most often
// what is said is true.
func (f *thawing) step(x Rate) Rate {
	c := f.path.Capacity
	if x < c {
		return c
	}
	if f.steps++; f.steps != 2 {
		f.excess = max(2*f.excess, firstExcess)
	}
	return c + c*f.excess
}

// queued says whether the newest round-trip time is longer than the shortest since the
// restart by more than chance: an eighth, and the time of two packets.
func (s *Sender) queued(received Rate) bool {
	base := s.thawing.base
	return s.sampled > base+base/8+2*interval(s.segment(), received)
}
