package tfrc

// A seed is a loss history that the sender puts in the place of what the receiver
// remembers from before a restart: all closed intervals have the same length. RFC 4342,
// section 6.1.1, leaves it to the sender to reckon p anew from loss intervals and what
// else it knows.
type seed struct {
	from    uint64  // the first packet of the present path
	planted uint64  // the newest packet when it was planted
	length  float64 // of the intervals before; 0: there is no seed
}

// lossRate is p by the intervals since from, with the seed behind them. It reports whether
// the seed still counts.
func (d seed) lossRate(r *Report) (float64, bool) {
	if r.Intervals.Len() == 0 {
		return r.LossRate, false
	}
	var lengths [historyLength + 1]float64
	n := 0
	end := r.Seq + 1 - uint64(r.Intervals.Skip)
	counts := false
	for i := range r.Intervals.Len() {
		v := r.Intervals.At(i)
		start := end - min(end, uint64(v.Lossless)+uint64(v.Loss))
		if start < d.from { // the part of it that is of this path
			if i == 0 {
				end = r.Seq + 1
			}
			lengths[n] = max(float64(end)-float64(d.from), 1)
			if i > 0 && end <= d.planted { // Probing's own loss, which the seed has made good
				lengths[n] = d.length
			}
			n++
			counts = true
			break
		}
		lengths[n] = max(v.Data, 1)
		n++
		end = start
	}
	for ; n < len(lengths); n++ {
		lengths[n] = d.length
	}
	return 1 / meanInterval(lengths[:]), counts
}

// plant makes the rate x, which the path has just carried, the one that p stands for.
func (s *Sender) plant(x Rate) {
	s.seed = seed{s.thawing.restart, s.sent.last.seq, lossInterval(s.segment(), s.rtt, x)}
	s.lossRate = 1 / s.seed.length
}
