package manet

import (
	"cmp"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"mihf.dev/mihf"
)

// Timing of the path density protocol.
const (
	Refresh = 3 * time.Second // a source tells of each of its flows this often
	Hold    = 6 * time.Second // what isn't refreshed is gone after it, counted from the source's stamp

	jitterLeast = 5 * time.Millisecond  // a change waits so long for others to go with it
	jitterMost  = 25 * time.Millisecond //
	gapLeast    = 50 * time.Millisecond // between two datagrams of a node
	retryAfter  = 150 * time.Millisecond
	retryMost   = 5
	copyAfter   = 80 * time.Millisecond // where much is lost, all is said again
	copiesMost  = 4
	lossCopied  = 0.1              // of a neighbour's datagrams: from here on
	lossLeft    = 0.05             // and so often that no more than this is lost
	remember    = 10 * time.Minute // sequence numbers of nodes that are gone, with a key
)

// Bounds of what other nodes can make a Density hold. What is beyond is counted.
const (
	MaxFlows      = 1024
	MaxNeighbours = 256
)

// Router knows the routes of this node. Its answers change with the routes.
type Router interface {
	// Mine reports whether the address is this node's own.
	Mine(addr netip.Addr) bool
	// NextHop returns the neighbour through which dst is reached, as other nodes see its
	// datagrams come, and the rate to it in bit/s, 0 where it is not known.
	NextHop(dst netip.Addr) (next netip.Addr, rateBps uint64, ok bool)
}

// Config is what a node of the protocol is given.
type Config struct {
	Node   uint32 // names the node to others; not 0; another one for each node
	Boot   uint32 // larger than at the last start: the wall clock's seconds will do
	Key    []byte // shared by all nodes; nil: nothing is signed, and anything believed
	Router Router
}

// Local is a flow that begins at this node.
type Local struct {
	Flow
	Demand float64 // how much of the load it can use at most, above 0; 0: all
}

// Path is what is known of a local flow's way.
type Path struct {
	Share    float64 // of the load of its bottleneck region
	Node     uint32  // whose region that is; 0: none bounds it
	Hops     int     // to the destination, where Complete
	RateBps  uint64  // the slowest radio on the way; 0: not known
	Complete bool    // the destination has answered within Hold
}

// Counts is what came and was not taken, and what was sent.
type Counts struct {
	Sent, SentOctets uint64
	Malformed        uint64 // not the protocol's form
	Forged           uint64 // not signed with the key
	Replayed         uint64 // a sequence number that was there
	Beyond           uint64 // flows or neighbours above the bounds
	Missed           uint64 // of neighbours, by their sequence numbers
	SameNode         uint64 // from another node with this one's number
}

// Density is one node of the path density protocol. It is used by one goroutine. Give it
// what comes, send what Datagram returns to all neighbours in one hop, and call Advance
// at Next.
type Density struct {
	cfg        Config
	rng        *rand.Rand
	flows      map[Flow]*known
	neighbours map[netip.Addr]*neighbour
	local      map[Flow]float64 // demand
	level      float64
	sequence   uint64
	sent       mihf.Time // when the last datagram was made
	said       float64   // the level in it
	send       mihf.Time // when the next one is due; zero: nothing to say
	lost       float64   // part of the neighbours' datagrams, of late
	copies     int       // times to say the level again
	refresh    mihf.Time // when the local flows are stamped again
	out        [][]byte
	counts     Counts
}

// known is a flow that this node carries or hears of.
type known struct {
	listing             // as this node lists it
	expires   mihf.Time // zero for a local one
	stamped   mihf.Time // when the source gave the stamp, by this node's clock
	onPath    bool
	prev      netip.Addr // who has this node as its next hop; invalid at the source
	beyond    bound      // the least of the way from the next hop on, as it said
	answered  mihf.Time  // when the next hop last said that the destination is there; zero: never
	listers   []lister   // neighbours that are on its path
	pending   bool       // to be listed in the next datagram
	retry     mihf.Time  // zero: the next hop was heard, or none is
	tries     int
	farAhead  uint8  // hops to the destination from the next hop
	rateHop   uint32 // kbit/s to the next hop; 0: not known
	rateAhead uint32 // the slowest from there on
	copies    int    // times to be listed again, against loss
}

type lister struct {
	addr    netip.Addr
	expires mihf.Time
}

type neighbour struct {
	node     uint32
	level    float64
	sequence uint64
	expires  mihf.Time // zero: gone, and only its sequence number is kept
	forget   mihf.Time
}

// NewDensity returns a node without flows.
func NewDensity(cfg Config) *Density {
	return &Density{
		cfg:        cfg,
		rng:        rand.New(rand.NewPCG(uint64(cfg.Node), uint64(cfg.Boot))),
		flows:      map[Flow]*known{},
		neighbours: map[netip.Addr]*neighbour{},
		local:      map[Flow]float64{},
		level:      1,
		said:       1,
		sequence:   uint64(cfg.Boot) << 32,
	}
}

// SetFlows says which flows begin at this node now. Flows between families, or to this
// node itself, are left out.
func (d *Density) SetFlows(now mihf.Time, flows []Local) {
	next := map[Flow]float64{}
	for _, f := range flows {
		if !routable(f.Src) || !routable(f.Dst) || f.Src.Is4() != f.Dst.Is4() || d.cfg.Router.Mine(f.Dst) {
			continue
		}
		if f.Demand <= 0 || f.Demand > 1 {
			f.Demand = 1
		}
		next[f.Flow] = f.Demand
	}
	for f := range d.local {
		if _, still := next[f]; !still {
			delete(d.flows, f)
		}
	}
	for _, f := range sorted(next) {
		demand := next[f]
		if k, ok := d.flows[f]; ok && k.demandIs(d.local, demand) {
			continue
		}
		d.local[f] = demand
		d.begin(now, f)
	}
	d.local = next
	d.settle(now)
}

func (k *known) demandIs(local map[Flow]float64, demand float64) bool {
	was, ok := local[k.flow]
	return ok && was == demand
}

func (d *Density) begin(now mihf.Time, f Flow) {
	k, ok := d.flows[f]
	if !ok {
		k = &known{listing: listing{flow: f, stamp: uint8(d.rng.Uint32()), share: bound{load: 1}, toDst: hopsNone}, beyond: bound{load: 1}} //nolint:gosec // any octet
		d.flows[f] = k
	}
	k.onPath, k.prev, k.expires, k.fromSrc = true, netip.Addr{}, 0, 0
	d.stamp(now, k)
	if d.refresh.IsZero() {
		d.refresh = now.Add(d.jittered(Refresh))
	}
}

// stamp is the source's word that the flow is still there, and with which share.
func (d *Density) stamp(now mihf.Time, k *known) {
	k.stamp++
	k.stamped, k.tries = now, 0
	d.route(k)
	d.list(now, k)
}

// route asks for the next hop. Another one than before has said nothing yet.
func (d *Density) route(k *known) {
	next, rate, _ := d.cfg.Router.NextHop(k.flow.Dst)
	if d.cfg.Router.Mine(k.flow.Dst) {
		next, rate = netip.Addr{}, 0
	}
	if next != k.next {
		k.next, k.answered, k.beyond, k.farAhead, k.rateAhead = next, 0, bound{load: 1}, hopsNone, 0
	}
	k.rateHop = kbps(rate)
}

// list has the flow in the next datagram.
func (d *Density) list(now mihf.Time, k *known) {
	k.pending, k.copies = true, d.again()
	d.speak(now)
}

func (d *Density) speak(now mihf.Time) {
	at := now.Add(jitterLeast + time.Duration(d.rng.Int64N(int64(jitterMost-jitterLeast))))
	if earliest := d.sent.Add(gapLeast); !d.sent.IsZero() && at.Before(earliest) {
		at = earliest
	}
	if d.send.IsZero() || at.Before(d.send) {
		d.send = at
	}
}

// again returns how often a datagram is repeated, by what is lost of the neighbours'.
func (d *Density) again() int {
	if d.lost < lossCopied {
		return 0
	}
	return min(copiesMost, int(math.Ceil(math.Log(lossLeft)/math.Log(min(d.lost, 0.99))))-1)
}

func (d *Density) jittered(t time.Duration) time.Duration {
	return t - 100*time.Millisecond + time.Duration(d.rng.Int64N(int64(200*time.Millisecond)))
}

// Path returns what is known of a local flow's way.
func (d *Density) Path(f Flow) (Path, bool) {
	k, ok := d.flows[f]
	if _, local := d.local[f]; !ok || !local {
		return Path{}, false
	}
	return Path{
		Share: k.share.load, Node: k.share.node, Hops: int(k.toDst),
		RateBps: uint64(k.rateDst) * 1000, Complete: k.toDst != hopsNone,
	}, true
}

// Counts returns the counters since the start.
func (d *Density) Counts() Counts { return d.counts }

// Level returns what this node's region suggests to the flows that it bounds, and how
// many flows are in it.
func (d *Density) Level() (cload float64, flows int) { return d.level, len(d.flows) }

// Datagram returns the next datagram to send to all neighbours, if there is one.
func (d *Density) Datagram() ([]byte, bool) {
	if len(d.out) == 0 {
		return nil, false
	}
	b := d.out[0]
	d.out = d.out[1:]
	return b, true
}

// Next returns when Advance is to be called; zero: when something has come.
func (d *Density) Next() mihf.Time {
	next := mihf.Time(0)
	sooner := func(t mihf.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	sooner(d.send)
	sooner(d.refresh)
	for _, k := range d.flows {
		sooner(k.expires)
		sooner(k.retry)
		if !k.answered.IsZero() {
			sooner(k.answered.Add(Hold))
		}
	}
	for _, n := range d.neighbours {
		sooner(n.expires)
		sooner(n.forget)
	}
	return next
}

// Advance does what is due.
func (d *Density) Advance(now mihf.Time) {
	d.expire(now)
	if d.refresh.Due(now) {
		d.refresh = 0
		for _, f := range sorted(d.local) {
			d.stamp(now, d.flows[f])
			d.refresh = now.Add(d.jittered(Refresh))
		}
		d.settle(now)
	}
	for _, k := range d.flows {
		if k.retry.Due(now) {
			k.retry = 0
			d.list(now, k)
		}
	}
	if d.send.Due(now) {
		d.send = 0
		d.emit(now)
	}
}

func (d *Density) expire(now mihf.Time) {
	changed := false
	for f, k := range d.flows {
		if k.expires.Due(now) {
			delete(d.flows, f)
			changed = true
			continue
		}
		if !k.answered.IsZero() && k.answered.Add(Hold).Due(now) {
			k.answered, k.beyond, k.farAhead, k.rateAhead = 0, bound{load: 1}, hopsNone, 0
			changed = true
		}
		k.listers = slices.DeleteFunc(k.listers, func(l lister) bool { return l.expires.Due(now) })
	}
	for a, n := range d.neighbours {
		if n.expires.Due(now) {
			n.expires, n.level, changed = 0, 1, true
		}
		if n.forget.Due(now) {
			delete(d.neighbours, a)
		}
	}
	if changed {
		d.settle(now)
	}
}

func sorted(m map[Flow]float64) []Flow {
	out := make([]Flow, 0, len(m))
	for f := range m {
		out = append(out, f)
	}
	slices.SortFunc(out, compareFlows)
	return out
}

func compareFlows(a, b Flow) int { return cmp.Or(a.Src.Compare(b.Src), a.Dst.Compare(b.Dst)) }

func kbps(bps uint64) uint32 { return uint32(min(bps/1000, 1<<32-1)) }

// slower returns the smaller of two rates, of which 0 is not known.
func slower(a, b uint32) uint32 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
