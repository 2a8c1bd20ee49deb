package radio

import (
	"time"
)

// PHY holds the times and limits of a physical layer and of the DCF on it.
type PHY struct {
	Slot, SIFS   time.Duration
	Preamble     time.Duration // preamble and PLCP header
	Symbol       time.Duration // a frame lasts a whole number of them; 0: of bits
	Extension    time.Duration // silence that counts as part of the frame
	ServiceBits  int           // that the PHY adds to a frame
	BasicBPS     int64         // of acknowledgements
	CWMin, CWMax int           // slots
	Retries      int           // transmissions of a frame after the first
}

// DSSS is IEEE 802.11b with the long preamble (IEEE 802.11-2020, table 15-5 and 16-4).
var DSSS = PHY{
	Slot: 20 * time.Microsecond, SIFS: 10 * time.Microsecond, Preamble: 192 * time.Microsecond,
	BasicBPS: 1e6, CWMin: 31, CWMax: 1023, Retries: 6,
}

// OFDM is IEEE 802.11a (IEEE 802.11-2020, table 17-21), with acknowledgements at 6 Mbit/s.
var OFDM = PHY{
	Slot: 9 * time.Microsecond, SIFS: 16 * time.Microsecond, Preamble: 20 * time.Microsecond,
	Symbol: 4 * time.Microsecond, ServiceBits: 16 + 6,
	BasicBPS: 6e6, CWMin: 15, CWMax: 1023, Retries: 6,
}

// Octets of MAC headers with the frame check sequence.
const (
	dataHeader = 28
	ackFrame   = 14
)

// Air is how long a frame of so many octets, MAC header included, is on the air.
func (p *PHY) Air(octets int, bps int64) time.Duration {
	bits := int64(octets*8 + p.ServiceBits)
	ns := ceil(bits*int64(time.Second), bps)
	if symbol := int64(p.Symbol); symbol > 0 {
		ns = ceil(ns, symbol) * symbol
	}
	return p.Preamble + time.Duration(ns) + p.Extension
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

// DIFS is how long the channel is idle before a station counts slots.
func (p *PHY) DIFS() time.Duration { return p.SIFS + 2*p.Slot }

// EIFS is the same after a frame that could not be read: its acknowledgement may follow.
func (p *PHY) EIFS() time.Duration { return p.SIFS + p.Air(ackFrame, p.BasicBPS) + p.DIFS() }

// ackTimeout is how long after its frame a station waits for the acknowledgement.
func (p *PHY) ackTimeout() time.Duration {
	return p.SIFS + p.Air(ackFrame, p.BasicBPS) + p.Slot
}

// Exchange is how long a packet of so many octets and its acknowledgement take, from the
// idle channel to the idle channel, without backoff.
func (p *PHY) Exchange(octets int, bps int64) time.Duration {
	return p.DIFS() + p.Air(octets+dataHeader, bps) + p.SIFS + p.Air(ackFrame, p.BasicBPS)
}
