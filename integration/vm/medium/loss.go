package medium

import "math"

// A Rate is a way to send: what it takes to be understood.
type Rate struct {
	MbitS  float64
	NeedDB float64 // signal over noise at which one of ten frames of 1000 bytes is lost
}

// The driver's legacy rates: at 2.4 GHz four of 802.11b, then those of 802.11g, which are all
// that there are above. The needs are those of usual receivers: the standard's least
// sensitivities (IEEE 802.11-2020, table 17-18) with 5 dB in hand.
var (
	legacy = []Rate{
		{1, 1},
		{2, 3},
		{5.5, 5},
		{11, 7},
		{6, 5},
		{9, 6},
		{12, 8},
		{18, 10},
		{24, 13},
		{36, 17},
		{48, 21},
		{54, 22.5},
	}
	// By modulation and coding; the spatial streams of HT repeat them.
	mcs = []Rate{
		{6.5, 5},
		{13, 8},
		{19.5, 10},
		{26, 13},
		{39, 17},
		{52, 21},
		{58.5, 22.5},
		{65, 24},
		{78, 28},
		{86.7, 30},
	}
)

// Flags of a rate (enum hwsim_tx_rate_flags).
const (
	rateIsMCS = 1 << 3
	rateIs40  = 1 << 5
	rateIsVHT = 1 << 8
)

// rateOf translates the driver's index.
func rateOf(index int, flags uint16, frequencyMHz uint32) Rate {
	const above24GHz, of11g = 4000, 4
	switch {
	case flags&rateIsVHT != 0: // streams in the upper half
		return wide(mcs[min(index&0x0f, len(mcs)-1)], flags)
	case flags&rateIsMCS != 0: // eight for each number of streams
		return wide(mcs[index%8], flags)
	case frequencyMHz > above24GHz:
		index += of11g
	}
	return legacy[min(index, len(legacy)-1)]
}

// wide is a rate on a channel of twice the width, over which the same power is spread.
func wide(r Rate, flags uint16) Rate {
	if flags&rateIs40 != 0 {
		r.MbitS *= 2
		r.NeedDB += 3
	}
	return r
}

// A Loss model says with which probability a frame of some bytes is lost.
type Loss interface {
	Probability(signalDBm float64, r Rate, bytes int) float64
}

// NoLoss is the model in which all that is heard is understood.
type NoLoss struct{}

// Probability is 0.
func (NoLoss) Probability(float64, Rate, int) float64 { return 0 }

// SNR is loss by signal over noise and rate: a steep curve through one in ten at the rate's
// need. A frame of half the length comes through as well with half a dB less.
type SNR struct {
	NoiseDBm float64 // 0: -94, the noise of a 20 MHz channel and a receiver of 7 dB
}

// Probability grows with the length, the rate's need and a weaker signal.
func (m SNR) Probability(signalDBm float64, r Rate, bytes int) float64 {
	const (
		usualNoise  = -94
		perDB       = 1.5 // steepness: from one in ten to nine in ten in 3 dB
		needsBytes  = 1000
		perDoubling = 0.5 // dB
	)
	noise := m.NoiseDBm
	if noise == 0 {
		noise = usualNoise
	}
	need := r.NeedDB + perDoubling*math.Log2(float64(bytes)/needsBytes)
	middle := need - math.Log(9)/perDB
	return 1 / (1 + math.Exp(perDB*(signalDBm-noise-middle)))
}
