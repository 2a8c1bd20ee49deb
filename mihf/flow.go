package mihf

import (
	"net/netip"
	"time"
)

// Continuity says what a flow survives.
type Continuity uint8

// Continuities.
const (
	// ContinuitySameAddress: lives while its source address lives (a roam in an ESS or
	// subnet, a cell change, mobile IP, a tunnel's underlay).
	ContinuitySameAddress Continuity = iota
	// ContinuityRebinds: moves to another address by itself (QUIC, MPTCP, our DCCP).
	ContinuityRebinds
	// ContinuityNone: does not survive any handover.
	ContinuityNone
)

var continuityNames = [...]string{"same-address", "rebinds", "none"}

func (c Continuity) String() string { return nameOf(continuityNames[:], int(c)) }

// ParseContinuity is the inverse of [Continuity.String].
func ParseContinuity(s string) (Continuity, bool) {
	i, ok := indexOf(continuityNames[:], s)
	return Continuity(i), ok
}

// Direction is where a flow's data goes, seen from this host.
type Direction uint8

// Directions. Data that arrives is stopped at the far sender, one RTT away; data that
// leaves is stopped here.
const (
	DirectionBoth Direction = iota
	DirectionReceive
	DirectionSend
)

var directionNames = [...]string{"both", "receive", "send"}

func (d Direction) String() string { return nameOf(directionNames[:], int(d)) }

// ParseDirection is the inverse of [Direction.String].
func ParseDirection(s string) (Direction, bool) {
	i, ok := indexOf(directionNames[:], s)
	return Direction(i), ok
}

// Protocol is an IP protocol number (6 TCP, 17 UDP, 33 DCCP).
type Protocol uint8

// Endpoints is a 5-tuple. Parts that are not known are zero.
type Endpoints struct {
	Protocol Protocol
	Local    netip.AddrPort
	Remote   netip.AddrPort
}

// FlowSpec is what a transport registers. Zero durations and costs mean the default
// that the field names.
type FlowSpec struct {
	ID         FlowID      // "" : the broker gives one; else one that the same owner had
	Group      string      // joins subflows (MPTCP, QUIC paths); "" for none
	Tuples     []Endpoints // at most [MaxTuples]
	Link       LinkID      // "" : found from the tuples
	Continuity Continuity
	Direction  Direction
	Owner      Opt[uint32] // uid; unknown: the caller's own

	RTT        time.Duration // with queue; 0: sock_diag's, else the configured one
	LocalDrain time.Duration // time the local queue takes to empty; 0: 10 ms
	Lead       time.Duration // needed before the loss; 0: from direction, RTT, drain, margin

	CostMiss     time.Duration // seconds of this flow's sending; 0: 1 RTT + Recovery
	CostNeedless time.Duration // 0: the expected time frozen
	Recovery     time.Duration // the transport's time to come back after a loss; 0: 1 s

	LateFreeze bool          // wants Freeze at a disconnect that no forecast announced
	MaxFreeze  time.Duration // longest freeze; 0: 60 s (kernel TCP registers 10 s)
	Hints      HintSet       // hints it takes; 0: all
}

// MaxTuples bounds the 5-tuples of one flow.
const MaxTuples = 16

// RTTSource says where the RTT comes from that a flow's deadlines are computed from.
type RTTSource uint8

// Sources of an RTT.
const (
	RTTAssumed  RTTSource = iota // the configured one
	RTTMeasured                  // the kernel's, of the flow itself
	RTTStated                    // by the transport
)

var rttSourceNames = [...]string{"assumed", "measured", "stated"}

func (s RTTSource) String() string { return nameOf(rttSourceNames[:], int(s)) }

// ParseRTTSource is the inverse of [RTTSource.String].
func ParseRTTSource(s string) (RTTSource, bool) {
	i, ok := indexOf(rttSourceNames[:], s)
	return RTTSource(i), ok
}

// FlowUpdate is a transport's newer state. Unknown fields stay as they are.
type FlowUpdate struct {
	Flow       FlowID
	RTT        Opt[time.Duration]
	LocalDrain Opt[time.Duration]
	Lead       Opt[time.Duration]
	Tuples     []Endpoints // nil: unchanged
	Link       Opt[LinkID]
}

// Registration is the broker's answer to a [FlowSpec].
type Registration struct {
	Flow   FlowID
	Boot   BootID
	Link   LinkID        // where the flow is now; "" if not known yet
	Lead   time.Duration // in force
	Lease  time.Duration // of each Freeze
	Hints  HintSet       // granted; the others will not come
	Frozen bool          // a Freeze was in force (a flow that came back to the same broker)
}

// AckResult is what a transport did with a hint.
type AckResult uint8

// Results.
const (
	AckApplied AckResult = iota
	AckLate              // it came too late to be of use
	AckRefused
)

var ackNames = [...]string{"applied", "late", "refused"}

func (r AckResult) String() string { return nameOf(ackNames[:], int(r)) }

// ParseAckResult is the inverse of [AckResult.String].
func ParseAckResult(s string) (AckResult, bool) {
	i, ok := indexOf(ackNames[:], s)
	return AckResult(i), ok
}

// Ack is a transport's acknowledgement of a hint.
type Ack struct {
	Flow   FlowID
	Epoch  uint64
	Result AckResult
	// Held is the time that the transport had the hint before it acknowledged.
	Held time.Duration
}
