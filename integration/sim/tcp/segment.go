package tcp

import (
	"time"

	"mihf.dev/mihf"
)

// A Segment is what the sender puts on the wire.
type Segment struct {
	Seq            uint64    // number of the segment, from 0
	Sent           mihf.Time // TSval of RFC 7323
	Retransmission bool
	Probe          bool // of a closed window
}

// A Block is a range of segments, From included and To not.
type Block struct{ From, To uint64 }

// maxBlocks is how many blocks fit beside the timestamps (RFC 2018, section 3).
const maxBlocks = 3

// An Ack is what the receiver answers.
type Ack struct {
	Next   uint64    // the first segment that is missing; all before it are acknowledged
	Window int       // segments from Next on that the receiver has room for
	Echo   mihf.Time // TSecr of RFC 7323: when the oldest segment was sent that this one answers
	Blocks [maxBlocks]Block
	Used   int  // of Blocks
	DSACK  bool // Blocks[0] tells of a segment that came twice (RFC 2883)
}

// SizeBytes of an acknowledgement: IPv4 and TCP headers and timestamps, and the blocks.
func (a *Ack) SizeBytes() int {
	if a.Used == 0 {
		return headerBytes
	}
	return headerBytes + 4 + 8*a.Used
}

// headerBytes are IPv4 and TCP headers with timestamps.
const headerBytes = 52

// Defaults that both ends share.
const (
	defaultWindow   = 1 << 16 // segments; more than any path of the bed holds
	defaultAckDelay = 200 * time.Millisecond
)
