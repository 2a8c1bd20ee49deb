package sockdiag

import (
	"cmp"
	"net/netip"
	"slices"

	"mihf.dev/mihf"
)

// Bounds of one reading.
const (
	MaxSockets = 1 << 14 // that are remembered
	MaxOthers  = 128     // flows published that nobody watches
	// minReceived is how much must have arrived since the reading before for the receiving
	// side's RTT to be of now.
	minReceived = 8 << 10
)

// state is what was read and published. It is pure.
type state struct {
	flows map[uint64]*entry // by cookie
	round uint64

	// Of this round.
	all       []mihf.Observation
	others    []other
	heldBack  uint64
	forgotten uint64
	moved     uint64 // octets both ways, since the round before
}

type entry struct {
	published mihf.FlowReading
	shown     bool // published at all
	received  uint64
	total     uint64 // octets both ways
	moved     uint64 // of them, when it was published last
	round     uint64
}

// other is a flow that nobody watches and that has something new.
type other struct {
	entry *entry
	s     socket
	moved uint64 // since it was published
}

func newState() *state { return &state{flows: map[uint64]*entry{}} }

// begin starts a reading.
func (st *state) begin() {
	st.round++
	st.all, st.others = st.all[:0], st.others[:0]
	st.heldBack, st.forgotten, st.moved = 0, 0, 0
}

// links says which link a socket is on.
type links struct {
	addresses map[netip.Addr]mihf.LinkID // "": of several
	byIndex   func(int) (mihf.LinkID, bool)
}

func (l *links) of(s *socket) mihf.LinkID {
	if s.device != 0 && l.byIndex != nil {
		if id, ok := l.byIndex(s.device); ok {
			return id
		}
	}
	return l.addresses[s.Local.Addr()]
}

// take takes a socket of the reading.
func (st *state) take(now mihf.Time, s *socket, w *watchSet, l *links) {
	e := st.flows[s.cookie]
	watched := w.has(&s.Endpoints)
	if e == nil {
		if n := len(st.flows); n >= 2*MaxSockets || (n >= MaxSockets && !watched) {
			st.forgotten++
			return
		}
		e = &entry{received: ^uint64(0), total: s.moved()}
		st.flows[s.cookie] = e
	}
	e.round = st.round
	received, known := s.ReceivedBytes.Get()
	if !known || received < e.received || received-e.received < minReceived {
		s.ReceiveRTT = unknown
	}
	e.received = received
	if total := s.moved(); total >= e.total {
		st.moved += total - e.total
		e.total = total
	}
	if e.shown && e.published == s.FlowReading {
		return
	}
	if watched {
		st.publish(now, e, s, l)
		return
	}
	moved := s.moved()
	switch {
	case l.of(s) == "": // of no use: neither a flow of ours nor a link's
	case !e.shown:
		st.others = append(st.others, other{e, *s, moved})
	default:
		st.others = append(st.others, other{e, *s, moved - min(moved, e.moved)})
	}
}

func (s *socket) moved() uint64 { return s.AckedBytes.Or(0) + s.ReceivedBytes.Or(0) }

func (st *state) publish(now mihf.Time, e *entry, s *socket, l *links) {
	e.published, e.shown, e.moved = s.FlowReading, true, s.moved()
	reading := s.FlowReading
	st.all = append(st.all, mihf.Observation{At: now, Sensor: Name, Link: l.of(s), Kind: mihf.ObsFlow, Flow: &reading})
}

// end ends a reading: it returns what is to be published, and forgets the sockets that are gone.
func (st *state) end(now mihf.Time, l *links) []mihf.Observation {
	if len(st.others) > MaxOthers {
		slices.SortFunc(st.others, func(a, b other) int { return cmp.Compare(b.moved, a.moved) })
		st.heldBack += uint64(len(st.others) - MaxOthers)
		st.others = st.others[:MaxOthers]
	}
	for i := range st.others {
		st.publish(now, st.others[i].entry, &st.others[i].s, l)
	}
	for cookie, e := range st.flows {
		if e.round != st.round {
			delete(st.flows, cookie)
		}
	}
	return st.all
}

// show has the flows of a set published at the next reading, whether they have changed or not.
func (st *state) show(w *watchSet) {
	for _, e := range st.flows {
		if e.shown && w.has(&e.published.Endpoints) {
			e.shown = false
		}
	}
}
