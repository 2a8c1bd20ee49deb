package familiar

import (
	"math"

	"mihf.dev/mihf"
)

// entry is what the radio said in one second, and what came of it.
type entry struct {
	rssi, rate int8  // dBm; perRate·log2(Mbit/s + 0.5)
	loss       uint8 // tenths of a second until the loss; 0: none came within 10 s
	cut        bool  // it does not follow the one before without a pause
	belief     float32
}

// State is the memory of one link. The zero State has seen nothing.
type State struct {
	ring  [Entries]entry
	next  int // where the next entry goes
	n     int
	at    mihf.Time // of the newest reading
	lost  uint32    // losses seen
	fades uint32    // of them those that a fade led to
	sure  bool      // not only concluded
	kern  [len(Horizons)]float64
	filt  [len(Horizons)]float64
	close float64 // log of the kernel's weight
	free  float64 // belief in a place that is not known
}

func (s *State) entry(back int) *entry { // 1: the newest
	return &s.ring[(s.next-back+2*Entries)%Entries]
}

// Known reports whether anything can be said: a loss was seen.
func (s *State) Known() bool { return s.lost > 0 }

// Losses is how many losses were seen.
func (s *State) Losses() uint32 { return s.lost }

// At is when the newest reading was taken.
func (s *State) At() mihf.Time { return s.at }

// Len is how many entries are kept.
func (s *State) Len() int { return s.n }

// Last returns the newest signal and rate, as they are kept.
func (s *State) Last() (rssi, rate float64) {
	if s.n == 0 {
		return 0, 0
	}
	e := s.entry(1)
	return float64(e.rssi), float64(e.rate)
}

// Kernel returns the probability of a loss within each of [Horizons] by the comparison of
// the last seconds, and the log of how much there was to compare with.
func (s *State) Kernel() (within [len(Horizons)]float64, weight float64) { return s.kern, s.close }

// Filter returns the same by the place where the client seems to be, and the belief that
// the place is not known.
func (s *State) Filter() (within [len(Horizons)]float64, unknown float64) { return s.filt, s.free }

// Within returns the mean of both, bounded by [Doubt] where no loss was seen for sure.
func (s *State) Within() [len(Horizons)]float64 {
	w := s.kern
	for i := range w {
		w[i] = min((w[i]+s.filt[i])/2, 1)
		if !s.sure {
			w[i] = min(w[i], Doubt)
		}
	}
	return w
}

// Sure reports whether a loss was seen that was not only concluded from a pause.
func (s *State) Sure() bool { return s.sure }

// Lost marks the entries of the last ten seconds before a loss at the given moment.
func (s *State) Lost(at mihf.Time, sure bool) {
	if !sure && s.faded() {
		s.fades++
	}
	s.sure = s.sure || sure || s.fades >= fadesSure
	s.lost++
	since := at.Sub(s.at).Seconds()
	for back := 1; back <= min(s.n, 10); back++ {
		age := since + float64(back-1)
		if age > 10 {
			return
		}
		e := s.entry(back)
		e.loss = uint8(max(1, age*10))
		if e.cut {
			return
		}
	}
}

// faded reports whether the newest entries are weak and clearly below those before them.
func (s *State) faded() bool {
	const newest, before = 2, 8
	if s.n < newest+before {
		return false
	}
	var now, then float64
	for back := 1; back <= newest+before; back++ {
		if e := s.entry(back); back <= newest {
			now += float64(e.rssi) / newest
		} else {
			then += float64(e.rssi) / before
		}
	}
	return now <= weak && then-now >= fall
}

// Break says that the next reading does not follow the last.
func (s *State) Break() {
	for i := range s.ring {
		s.ring[i].belief = 0
	}
	s.kern, s.filt, s.close, s.free = [len(Horizons)]float64{}, [len(Horizons)]float64{}, 0, 1
}

// Add takes the reading of a second. cut: it does not follow the one before.
func (s *State) Add(at mihf.Time, rssi, mbps float64, cut bool) {
	s.ring[s.next] = entry{rssi: int8(math.Round(rssi)), rate: int8(math.Round(perRate * math.Log2(mbps+0.5))), cut: cut || s.n == 0}
	if s.next++; s.next == Entries {
		s.next = 0
	}
	s.n = min(s.n+1, Entries)
	s.at = at
	if s.lost > 0 && s.n > recent {
		s.compare()
		s.follow()
	}
}

// oldest returns where the oldest entry is.
func (s *State) oldest() int {
	if s.n == Entries {
		return s.next
	}
	return 0
}

// part is a weight that falls to losses by their tenths of a second.
type part [len(Horizons)]float32

func (w *part) count(loss uint8, k float32) {
	for i := len(Horizons) - 1; i >= 0 && loss <= tenths[i]; i-- {
		w[i] += k
	}
}

// tenths are the horizons in tenths of a second.
var tenths = func() (t [len(Horizons)]uint8) {
	for i, h := range Horizons {
		t[i] = uint8(h * 10)
	}
	return t
}()

// compare finds entries before which the last seconds were like those now.
func (s *State) compare() {
	var now [history][2]int
	s.window(1, &now)
	var total float32
	var sums part
	i := s.oldest()
	for back := s.n; back >= recent; back-- {
		at := i
		if i++; i == Entries {
			i = 0
		}
		k := s.alike(at, s.n-back, &now)
		total += k
		if l := s.ring[at].loss; l > 0 {
			sums.count(l, k)
		}
	}
	for i := range sums {
		s.kern[i] = (float64(sums[i]) + priorLoss) / (float64(total) + priorEntries)
	}
	s.close = math.Log(float64(total) + 0.1)
}

// alike compares the entry at an index, with so many before it, with a window.
func (s *State) alike(i, before int, now *[history][2]int) float32 {
	d := 0
	for k := range now {
		e := &s.ring[i]
		a, b := int(e.rssi)-now[k][0], int(e.rate)-now[k][1]
		if d += weights[k] * (a*a + b*b); d >= len(kernelAt) {
			return 0
		}
		if !e.cut && before > 0 {
			before--
			if i--; i < 0 {
				i = Entries - 1
			}
		}
	}
	return kernelAt[d]
}

// window returns the entry and those before it, down to a cut, which counts as standing.
func (s *State) window(back int, w *[history][2]int) {
	i := s.next - back
	if i < 0 {
		i += Entries
	}
	for k := range w {
		e := &s.ring[i]
		w[k] = [2]int{int(e.rssi), int(e.rate)}
		if !e.cut && back+k+1 <= s.n {
			if i--; i < 0 {
				i = Entries - 1
			}
		}
	}
}

// follow moves the belief in each entry an entry on and weighs it by the reading.
func (s *State) follow() {
	now := s.entry(1)
	rssi, rate := int(now.rssi), int(now.rate)
	compared := s.n - recent + 1
	anywhere := float32(jump / math.Max(float64(compared), 60))
	var b1, b2, before, sum float32 // b1, b2: the beliefs, before, of the two entries that precede
	i := s.oldest()
	for range compared {
		e := &s.ring[i]
		if i++; i == Entries {
			i = 0
		}
		old := e.belief
		before += old
		b := (b2*stay+b1*(1-2*stay)+old*stay)*(1-jump) + anywhere
		b2, b1 = b1, old
		e.belief = b * placeAt[distance(int(e.rssi), rssi)] * placeAt[distance(int(e.rate), rate)]
		sum += e.belief
	}
	unknown := max(1-before, 0.02) * novel
	sum += unknown
	var sums part
	scale := 1 / sum
	i = s.oldest()
	for range compared {
		e := &s.ring[i]
		if i++; i == Entries {
			i = 0
		}
		if e.belief *= scale; e.loss > 0 {
			sums.count(e.loss, e.belief)
		}
	}
	s.free = float64(unknown * scale)
	for i := range sums {
		s.filt[i] = float64(sums[i]) + 0.06*s.free
	}
}

func distance(a, b int) uint8 {
	if a < b {
		a, b = b, a
	}
	return uint8(min(a-b, math.MaxUint8))
}
