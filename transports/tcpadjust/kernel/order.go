package kernel

import (
	"net/netip"
	"time"
)

// Socket is a connection as the kernel has it.
type Socket struct {
	Cookie         uint64
	Local, Remote  netip.AddrPort
	Device         int    // ifindex of the route that it uses now; 0: none is cached
	UID            uint32 // its owner, of the initial user namespace
	State          uint8  // TCP_ESTABLISHED and so on
	Cwnd, Ssthresh uint32 // segments
	Clamp          uint32 // segments
	MSS            uint32 // octets
	SRTT, MinRTT   time.Duration
	RcvRTT         time.Duration // as a receiver measures it
	PacketsOut     uint32
	LostOut        uint32 // segments taken for lost, and not retransmitted yet
	RcvNxt, SndUna uint32 // sequence numbers
	SndNxt         uint32
	SndWnd         uint32 // octets that the peer advertises
	Delivered      uint32 // segments
	Retransmitted  uint32 // segments, in all
	BytesAcked     uint64
	BytesReceived  uint64
	PacingBPS      uint64 // bit/s; ^0: no limit
}

// Order is what to do with a socket. What is zero stays as it is.
type Order struct {
	Cookie    uint64
	Cwnd      uint32 // segments
	Ssthresh  uint32 // segments
	Acks      uint32 // acknowledgements to be sent at once, at most 3
	Clamp     uint32 // segments; it also bounds the threshold, so that it is set first
	PacingBPS uint64 // bit/s, up to 34 Gbit/s; Unpaced: no limit
	MinRTO    time.Duration
	Push      bool // what waits is sent now
	MaxRTO    time.Duration
}

// Unpaced takes a pacing rate off.
const Unpaced = ^uint64(0)

// Result is what became of an order.
type Result struct {
	Cookie                        uint64
	Done                          bool   // the socket was there
	CwndBefore, CwndAfter         uint32 // segments
	SsthreshBefore, SsthreshAfter uint32
	ClampBefore                   uint32
	PacingBefore                  uint64   // bit/s; Unpaced: none
	Refused                       []string // what the kernel refused, with its reason
}
