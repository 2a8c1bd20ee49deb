package manet

import (
	"errors"
	"math"
	"net/netip"
	"slices"
	"time"

	"mihf.dev/mihf"
)

// Receive takes a datagram that came from a neighbour's address. What is malformed, not
// signed, or was there before is counted and changes nothing.
func (d *Density) Receive(now mihf.Time, from netip.Addr, b []byte) {
	if d.cfg.Router.Mine(from) {
		return
	}
	m, err := decode(b, d.cfg.Key)
	switch {
	case errors.Is(err, errSignature):
		d.counts.Forged++
		return
	case err != nil:
		d.counts.Malformed++
		return
	}
	if !d.meet(now, from, &m) {
		return
	}
	for i := range m.flows {
		d.hear(now, from, &m.flows[i])
	}
	d.settle(now)
}

// meet notes who spoke and with which level. It returns false where that is not new.
func (d *Density) meet(now mihf.Time, from netip.Addr, m *message) bool {
	n, ok := d.neighbours[from]
	if !ok {
		if len(d.neighbours) >= MaxNeighbours {
			d.counts.Beyond++
			return false
		}
		n = &neighbour{}
		d.neighbours[from] = n
	}
	if ok && m.sequence <= n.sequence {
		d.counts.Replayed++
		return false
	}
	if m.node == d.cfg.Node {
		d.counts.SameNode++
	}
	if ok && !n.expires.IsZero() {
		d.miss(m.sequence - n.sequence - 1)
	}
	n.node, n.level, n.sequence = m.node, m.level, m.sequence
	n.expires = now.Add(Hold)
	n.forget = n.expires
	if d.cfg.Key != nil { // it is worth remembering only where it can't be forged
		n.forget = now.Add(remember)
	}
	return true
}

// miss keeps the loss among neighbours, by the gaps in what one of them has numbered.
func (d *Density) miss(gap uint64) {
	const weight, most = 1. / 32, 16
	gap = min(gap, most) // a restart is no loss
	d.counts.Missed += gap
	d.lost -= d.lost * weight
	for range gap {
		d.lost += (1 - d.lost) * weight
	}
}

func (d *Density) hear(now mihf.Time, from netip.Addr, l *listing) {
	age := time.Duration(l.age) * 100 * time.Millisecond
	k, ok := d.flows[l.flow]
	_, local := d.local[l.flow]
	switch {
	case age >= Hold || l.fromSrc == math.MaxUint8 || !ok && d.cfg.Router.Mine(l.flow.Src):
		return // too old, gone round in a loop, or a flow of this node that has ended
	case !ok:
		if len(d.flows) >= MaxFlows {
			d.counts.Beyond++
			return
		}
		k = &known{listing: listing{flow: l.flow, stamp: l.stamp - 1, toDst: hopsNone}, beyond: bound{load: 1}, farAhead: hopsNone}
		d.flows[l.flow] = k
	}
	expires := now.Add(Hold - age)
	k.listedBy(from, expires)
	news := !local && int8(l.stamp-k.stamp) > 0 //nolint:gosec // serial arithmetic
	if news {
		k.stamp, k.share, k.expires, k.stamped, k.tries = l.stamp, l.share, expires, now.Add(-age), 0
	}
	if !local && l.stamp == k.stamp {
		d.follow(now, from, l, k, news)
	}
	if k.onPath && from == k.next {
		k.beyond, k.farAhead, k.rateAhead = l.ahead, l.toDst, l.rateDst
		if l.toDst != hopsNone {
			k.answered = now
		}
		if l.stamp == k.stamp {
			k.retry = 0
		}
	}
}

// follow decides whether this node is on the flow's path: the one before it says so.
func (d *Density) follow(now mihf.Time, from netip.Addr, l *listing, k *known, news bool) {
	mine := l.next.IsValid() && d.cfg.Router.Mine(l.next)
	if !mine {
		if k.onPath && from == k.prev { // it goes another way now
			k.onPath, k.retry, k.pending = false, 0, false
		}
		return
	}
	k.onPath, k.prev = true, from
	k.fromSrc = l.fromSrc + 1
	if news {
		d.route(k)
	}
	d.list(now, k) // and when it asks again, it has not heard this node
}

func (k *known) listedBy(from netip.Addr, expires mihf.Time) {
	i := slices.IndexFunc(k.listers, func(l lister) bool { return l.addr == from })
	switch {
	case i >= 0:
		k.listers[i].expires = max(k.listers[i].expires, expires)
	case len(k.listers) < MaxNeighbours:
		k.listers = append(k.listers, lister{from, expires})
	}
}

// settle computes the level of this node's region, and what its flows have ahead of
// them, and speaks of what has changed.
func (d *Density) settle(now mihf.Time) {
	users := make([]user, 0, len(d.flows))
	for _, k := range d.flows {
		users = append(users, user{share: k.share.load, here: k.share.node == d.cfg.Node})
	}
	d.level = level(users)
	around := bound{d.level, d.cfg.Node}
	for _, n := range d.sortedNeighbours() {
		around = least(around, bound{n.level, n.node})
	}
	for _, k := range d.flows {
		if k.onPath {
			d.lookAhead(now, k, around)
		}
	}
	d.speakIfNeeded(now)
}

// speakIfNeeded has the next datagram made where others would be wrong without it: they
// believe another level, or this node has to bound a flow and is silent.
func (d *Density) speakIfNeeded(now mihf.Time) {
	onPath, must := d.onAnyPath(), d.mustSpeak()
	believed := !d.sent.IsZero() && now.Sub(d.sent) < Hold
	if differs(d.said, d.level) && (believed || onPath || must) || must && !onPath && d.send.IsZero() {
		d.copies = d.again()
		d.speak(now)
	}
}

// sortedNeighbours returns those that are there, in an order that doesn't depend on the map.
func (d *Density) sortedNeighbours() []*neighbour {
	var out []*neighbour
	for _, n := range d.neighbours {
		if !n.expires.IsZero() {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b *neighbour) int { return int(int64(a.node) - int64(b.node)) })
	return out
}

// lookAhead computes the least level from here to the destination. At the source that is
// the flow's share.
func (d *Density) lookAhead(now mihf.Time, k *known, around bound) {
	was := k.listing
	k.ahead = least(around, k.beyond)
	switch {
	case d.cfg.Router.Mine(k.flow.Dst):
		k.toDst = 0
	case k.answered.IsZero() || k.farAhead == hopsNone || k.farAhead == hopsNone-1:
		k.toDst = hopsNone
	default:
		k.toDst = k.farAhead + 1
	}
	k.rateDst = slower(k.rateHop, k.rateAhead)
	demand, local := d.local[k.flow]
	if local {
		share := k.ahead
		if demand < share.load {
			share = bound{load: demand}
		}
		if differs(k.share.load, share.load) || k.share.node != share.node {
			k.share = share
			d.stamp(now, k)
		}
		return
	}
	if differs(was.ahead.load, k.ahead.load) || was.ahead.node != k.ahead.node || was.toDst != k.toDst || was.rateDst != k.rateDst {
		d.list(now, k)
	}
}

func differs(a, b float64) bool { return math.Abs(a-b) > near*max(a, b) }

func (d *Density) onAnyPath() bool {
	for _, k := range d.flows {
		if k.onPath {
			return true
		}
	}
	return false
}

// mustSpeak reports whether this node, on no path itself, has the region that bounds a
// flow it hears: nobody on that flow's path has said a level as low.
func (d *Density) mustSpeak() bool {
	if len(d.flows) < 2 {
		return false
	}
	for _, k := range d.flows {
		if k.share.node == d.cfg.Node {
			return true
		}
		if k.share.load >= d.level*(1-near) && !d.saidBy(k.listers) {
			return true
		}
	}
	return false
}

func (d *Density) saidBy(listers []lister) bool {
	return slices.ContainsFunc(listers, func(l lister) bool {
		n, ok := d.neighbours[l.addr]
		return ok && n.level <= d.level*(1+near)
	})
}

// emit makes the datagrams that are due.
func (d *Density) emit(now mihf.Time) {
	var due []*known
	for _, k := range d.flows {
		if k.pending {
			due = append(due, k)
		}
	}
	slices.SortFunc(due, func(a, b *known) int { return compareFlows(a.flow, b.flow) })
	d.sent, d.said = now, d.level
	m := message{node: d.cfg.Node, level: d.level}
	room := maxMessage - headerLen - signature
	for _, k := range due {
		l := k.list(now)
		if l.size() > room {
			d.push(&m)
			m.flows, room = nil, maxMessage-headerLen-signature
		}
		m.flows = append(m.flows, l)
		room -= l.size()
		if k.next.IsValid() && k.tries < retryMost {
			k.tries++
			k.retry = now.Add(retryAfter + time.Duration(d.rng.Int64N(int64(jitterMost))))
		}
	}
	d.push(&m)
	d.sayAgain(now, due)
	if d.send.IsZero() && !d.onAnyPath() && d.mustSpeak() { // those on a path speak with the flows' refreshes
		d.copies = d.again()
		d.send = now.Add(d.jittered(Refresh))
	}
}

// sayAgain has what was said repeated where much is lost.
func (d *Density) sayAgain(now mihf.Time, due []*known) {
	more := false
	for _, k := range due {
		if k.copies > 0 {
			k.copies--
			k.pending, more = true, true
		}
	}
	if d.copies > 0 {
		d.copies--
		more = true
	}
	if more {
		d.send = now.Add(copyAfter + time.Duration(d.rng.Int64N(int64(jitterMost))))
	}
}

func (k *known) list(now mihf.Time) listing {
	k.pending = false
	l := k.listing
	l.age = uint8(min(math.Ceil(now.Sub(k.stamped).Seconds()*10), math.MaxUint8))
	return l
}

func (d *Density) push(m *message) {
	d.sequence++
	m.sequence = d.sequence
	b := m.encode(nil, d.cfg.Key)
	d.out = append(d.out, b)
	d.counts.Sent++
	d.counts.SentOctets += uint64(len(b))
}
