package dbusfront

import (
	"fmt"

	"mihf.dev/mihf"
)

// holder is what the connections of one uid have of what all share; guarded by the bus's lock.
type holder struct {
	peers   int
	calls   int // that wait
	waiting int // octets of them
}

// Bounds of what waits, in octets: the calls of one user, or of all connections of which the
// bus was not asked yet whose they are; and of all.
const (
	maxWaitingOfUser = 4 << 20
	maxWaiting       = 16 << 20
)

// charge notes calls and octets that begin or cease to wait. The bus's lock is held.
func (p *peer) charge(calls, octets int) {
	p.waiting += octets
	p.user.calls += calls
	p.user.waiting += octets
	p.b.waiting += octets
}

// full says why a call of so many octets cannot wait; "": it can. The bus's lock is held.
func (p *peer) full(octets int) (refusal string) {
	of := p.user
	whose := "this user"
	if of == &p.b.strangers {
		whose = "connections that are not known yet"
	}
	switch {
	case of.calls >= p.b.s.o.MaxCalls:
		return fmt.Sprintf("%d calls of %s wait; no more can: see [dbus] max_waiting_per_user", of.calls, whose)
	case of.waiting+octets > maxWaitingOfUser:
		return fmt.Sprintf("calls of %d octets of %s wait; no more than %d can", of.waiting, whose, maxWaitingOfUser)
	case p.b.waiting+octets > maxWaiting:
		return fmt.Sprintf("calls of %d octets wait; no more than %d can", p.b.waiting, maxWaiting)
	}
	return ""
}

// claim gives the peer, when it is known whose it is, to that user; it says why not, where the
// user has its share of connections.
func (p *peer) claim(who mihf.Caller) (refusal string) {
	b := p.b
	uid, known := who.UID.Get()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !known || p.user != &b.strangers || b.peers[p.name] != p {
		return ""
	}
	u := b.users[uid]
	if u == nil {
		u = &holder{}
	}
	if u.peers >= b.s.o.MaxConnections && !b.forgetOne(u) {
		return fmt.Sprintf("%d connections of this user use the broker; no more can: see [dbus] max_connections_per_user", u.peers)
	}
	b.users[uid] = u
	p.uid = uid
	p.move(u)
	return ""
}

// move has what the peer holds counted to another user. The bus's lock is held.
func (p *peer) move(to *holder) {
	from, calls := p.user, len(p.queue)
	from.peers--
	from.calls -= calls
	from.waiting -= p.waiting
	if from.peers == 0 && from != &p.b.strangers {
		delete(p.b.users, p.uid)
	}
	if p.user = to; to == nil {
		return
	}
	to.peers++
	to.calls += calls
	to.waiting += p.waiting
}

// drop forgets a peer, with what waits. The bus's lock is held.
func (b *bus) drop(p *peer, why error) {
	delete(b.peers, p.name)
	p.move(nil)
	b.waiting -= p.waiting
	p.queue, p.waiting = nil, 0
	p.user = &holder{} // of nobody: its worker may come by once more
	p.cancel(why)
}

// forgetOne drops a connection, of a user or with nil of any, that has nothing here but its
// name. The bus's lock is held.
func (b *bus) forgetOne(of *holder) bool {
	for _, p := range b.peers {
		if (of == nil || p.user == of) && p.idle() {
			b.drop(p, mihf.ErrClosed)
			return true
		}
	}
	return false
}
