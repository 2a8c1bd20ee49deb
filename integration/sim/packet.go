package sim

import "mihf.dev/mihf"

// A Kind tells packets apart in the trace.
type Kind uint8

// Kinds of packets.
const (
	Data Kind = iota
	Feedback
)

func (k Kind) String() string {
	if k == Feedback {
		return "ack"
	}
	return "data"
}

// A Hop takes a packet on its way and, unless it is lost, calls [Packet.Forward].
type Hop interface{ Send(p *Packet) }

// A Packet is on its way from one endpoint to another. Its flow makes it with a [Pool]; who
// drops or receives it frees it.
type Packet struct {
	Flow      int    // number of the flow, for the trace and for who observes links
	Kind      Kind   // what it carries
	Seq       uint64 // the endpoint's number of it
	SizeBytes int    // with all headers
	Sent      mihf.Time
	Body      any // what the endpoint put in; it stays with the packet when that is used again

	path    []Hop
	hop     int
	receive func(p *Packet)
	pool    *Pool
	flight  Timer
	link    *Link  // in flight on it
	cut     uint64 // outages of that link when it left
}

// Forward passes the packet on to its next hop, or to the endpoint behind the last.
func (p *Packet) Forward() {
	if p.hop == len(p.path) {
		p.receive(p)
		return
	}
	p.hop++
	p.path[p.hop-1].Send(p)
}

// Free gives the packet back. Nobody may use it afterwards.
func (p *Packet) Free() { p.pool.free = append(p.pool.free, p) }

// A Pool makes the packets of one direction of a flow, and uses them again.
type Pool struct {
	sim     *Sim
	flow    int
	kind    Kind
	path    []Hop
	receive func(p *Packet)
	body    func() any
	free    []*Packet
}

// NewPool returns a pool of packets that go along path to receive, which frees them. body makes
// the body of a new packet.
func NewPool(s *Sim, flow int, kind Kind, path []Hop, body func() any, receive func(p *Packet)) *Pool {
	return &Pool{sim: s, flow: flow, kind: kind, path: path, receive: receive, body: body}
}

// Get returns a packet that is sent by [Packet.Forward].
func (l *Pool) Get(seq uint64, sizeBytes int) *Packet {
	var p *Packet
	if n := len(l.free); n > 0 {
		p, l.free = l.free[n-1], l.free[:n-1]
	} else {
		p = &Packet{Flow: l.flow, Kind: l.kind, path: l.path, receive: l.receive, pool: l, Body: l.body()}
		l.sim.initTimer(&p.flight, func(mihf.Time) { p.link.arrive(p) })
	}
	p.Seq, p.SizeBytes, p.Sent, p.hop = seq, sizeBytes, l.sim.now, 0
	return p
}
