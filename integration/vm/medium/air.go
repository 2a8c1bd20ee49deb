package medium

import (
	"math"
	"math/rand/v2"
	"slices"

	"mihf.dev/mihf"
)

// Air decides what happens to frames. It is pure: its answers follow from the seed and the
// calls. It belongs to one goroutine at a time.
type Air struct {
	random *rand.Rand
	loss   Loss
	pairs  map[pair]*way
	radios []Radio // that are joined, in order
	owner  map[Addr]Radio
}

// A pair is one direction.
type pair struct{ from, to Radio }

// A way is what is known of a pair.
type way struct {
	signal Signal
	since  mihf.Time // from when the signal counts its time
	truth  Truth
}

// Truth is what came through between two radios, in one direction.
type Truth struct {
	LastData   mihf.Time // when the last data frame was delivered; 0: none was
	Data       int       // data frames delivered
	DataLost   int       // data frames to this receiver that no attempt brought through
	LastBeacon mihf.Time // when the last frame to a group was delivered; 0: none was
	SignalDBm  int       // of the last frame delivered, of any kind
}

// A Reception is a radio that hears a frame.
type Reception struct {
	To        Radio
	SignalDBm int
	Attempt   int // which of the sender's attempts it heard, from 1
	rateIndex int8
}

// A Status is what the sender learns.
type Status struct {
	Acked     bool
	Attempts  int
	SignalDBm int // of the acknowledgement
}

// NewAir returns the air without pairs and without a loss model. The seed is that of all
// losses.
func NewAir(seed uint64) *Air {
	return &Air{random: rand.New(rand.NewPCG(seed, 0)), loss: NoLoss{}, pairs: map[pair]*way{}, owner: map[Addr]Radio{}}
}

// SetLoss sets the loss model.
func (a *Air) SetLoss(l Loss) { a.loss = l }

// Set gives the signal of one direction, whose time begins now. What is known of the pair
// stays. It reports false where there would be more than MaxRadios radios.
func (a *Air) Set(now mihf.Time, from, to Radio, s Signal) bool {
	if !a.admit(from) || !a.admit(to) {
		return false
	}
	w := a.pairs[pair{from, to}]
	if w == nil {
		w = &way{}
		a.pairs[pair{from, to}] = w
	}
	w.signal, w.since = s, now
	return true
}

func (a *Air) admit(r Radio) bool {
	i, known := slices.BinarySearch(a.radios, r)
	if !known {
		if len(a.radios) == MaxRadios {
			return false
		}
		a.radios = slices.Insert(a.radios, i, r)
	}
	return true
}

// Own tells that an interface of a radio has an address. It reports false where that would be
// more than MaxAddresses; frames to it then go to all.
func (a *Air) Own(address Addr, r Radio) bool {
	if _, known := a.owner[address]; !known && len(a.owner) == MaxAddresses {
		return false
	}
	a.owner[address] = r
	return true
}

// Disown tells that an interface has an address no more.
func (a *Air) Disown(address Addr) { delete(a.owner, address) }

// Signal is that of a pair at a moment; false: nothing is heard.
func (a *Air) Signal(now mihf.Time, from, to Radio) (dBm float64, heard bool) {
	w := a.pairs[pair{from, to}]
	if w == nil || from == to {
		return 0, false
	}
	return w.signal.At(now.Sub(w.since))
}

// Truth is what came through from one radio to another until now.
func (a *Air) Truth(from, to Radio) Truth {
	if w := a.pairs[pair{from, to}]; w != nil {
		return w.truth
	}
	return Truth{}
}

// Transmit returns the radios that hear a frame, in order. Who gives the frame to them tells
// which took it to Done.
func (a *Air) Transmit(now mihf.Time, f *Frame) []Reception {
	a.Own(f.By, f.From) // interfaces change their addresses
	receivers := a.radios
	if to, known := a.owner[f.To]; known && !f.To.group() {
		receivers = []Radio{to}
	}
	var heard []Reception
	for _, to := range receivers {
		if signal, ok := a.Signal(now, f.From, to); ok {
			if r, ok := a.attempt(f, signal); ok {
				r.To = to
				heard = append(heard, r)
				continue
			}
		}
		if w := a.pairs[pair{f.From, to}]; w != nil && a.isFor(f, to) {
			w.truth.DataLost++
		}
	}
	return heard
}

// isFor reports whether a frame has data for this receiver.
func (a *Air) isFor(f *Frame, to Radio) bool {
	owner, known := a.owner[f.To]
	return f.Data && known && owner == to
}

// attempt plays a sender's attempts until one is heard. To a group there is only one.
func (a *Air) attempt(f *Frame, signalDBm float64) (Reception, bool) {
	r := Reception{SignalDBm: int(math.Round(signalDBm))}
	tries := f.Tries
	if len(tries) == 0 {
		tries = []Try{{Rate: legacy[0], Count: 1}}
	}
	for _, try := range tries {
		r.rateIndex = try.legacyIndex()
		lost := a.loss.Probability(signalDBm, try.Rate, len(f.bytes))
		for range try.Count {
			r.Attempt++
			if lost == 0 || a.random.Float64() >= lost {
				return r, true
			}
			if f.To.group() || f.NoAck {
				return r, false
			}
		}
	}
	return r, false
}

// legacyIndex is the driver's index of a legacy rate, 0 for any other.
func (t Try) legacyIndex() int8 {
	if slices.Contains(legacy, t.Rate) {
		return t.index
	}
	return 0
}

// Done tells which receptions of a frame the radios took, and returns what its sender learns.
func (a *Air) Done(now mihf.Time, f *Frame, taken []Reception) Status {
	s := Status{Attempts: f.attempts(), SignalDBm: signalOfNone}
	if f.To.group() || f.NoAck {
		s.Acked, s.Attempts = !f.NoAck, min(1, s.Attempts)
	}
	for _, r := range taken {
		w := a.pairs[pair{f.From, r.To}]
		w.truth.SignalDBm = r.SignalDBm
		owner, known := a.owner[f.To]
		switch {
		case f.To.group():
			w.truth.LastBeacon = now
		case !known || owner == r.To:
			if !f.NoAck {
				s = Status{Acked: true, Attempts: r.Attempt, SignalDBm: r.SignalDBm}
			}
			if f.Data {
				w.truth.LastData = now
				w.truth.Data++
			}
		}
	}
	return s
}

// signalOfNone is what a sender without an acknowledgement is told.
const signalOfNone = -100

func (f *Frame) attempts() int {
	n := 0
	for _, t := range f.Tries {
		n += t.Count
	}
	return n
}
