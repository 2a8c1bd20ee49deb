package broker

import (
	"fmt"
	"reflect"
	"sync"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
)

// shares are what callers hold of the broker's room. Feeds end in any goroutine.
type shares struct {
	mu     sync.Mutex
	open   access.Shares // feeds, attachments and recorders that have not ended
	unread access.Shares // bytes of the snapshots that were not read
}

// unreadShares is how many users' shares of unread bytes there are together.
const unreadShares = 4

func (s *shares) set(cfg *Config) {
	each := int64(cfg.MaxUnreadBytesPerUser)
	s.open = access.Shares{Each: int64(cfg.MaxSubscribersPerUser), Total: int64(cfg.MaxSubscribers)}
	s.unread = access.Shares{Each: each, Total: unreadShares * each}
}

// subscribers returns how many have not ended.
func (s *shares) subscribers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.open.Sum())
}

// admit makes room for one more feed, attachment or recorder.
func (b *Broker) admit(who mihf.Identity) error {
	b.shares.mu.Lock()
	room := b.shares.open.Take(who, 1)
	b.shares.mu.Unlock()
	switch room {
	case access.OwnFull:
		return b.refused(fmt.Errorf("%w: %v has %d subscriptions and transports; see [broker] max_subscribers_per_user", mihf.ErrLimit, who, b.cfg.MaxSubscribersPerUser))
	case access.TotalFull:
		return b.refused(fmt.Errorf("%w: %d subscribers; see [broker] max_subscribers", mihf.ErrLimit, b.cfg.MaxSubscribers))
	case access.Enough:
	}
	return nil
}

// leave gives back what admit gave.
func (b *Broker) leave(who mihf.Identity) {
	b.shares.mu.Lock()
	defer b.shares.mu.Unlock()
	b.shares.open.Give(who, 1)
}

// charge counts a snapshot as unread by the feed's caller until discharge.
func (b *Broker) charge(f *feed, s *mihf.Snapshot) error {
	n := snapshotBytes(s)
	b.shares.mu.Lock()
	room := b.shares.unread.Take(f.who, n)
	b.shares.mu.Unlock()
	switch room {
	case access.OwnFull:
		return b.refused(fmt.Errorf("%w: snapshots of more than %d bytes wait for %v to read them; see [broker] max_unread_bytes_per_user", mihf.ErrLimit, b.cfg.MaxUnreadBytesPerUser, f.who))
	case access.TotalFull:
		return b.refused(fmt.Errorf("%w: snapshots of more than %d bytes wait for their subscribers; see [broker] max_unread_bytes_per_user", mihf.ErrLimit, unreadShares*b.cfg.MaxUnreadBytesPerUser))
	case access.Enough:
		f.unread.Store(n)
	}
	return nil
}

// discharge ends what charge began; it may be called again.
func (b *Broker) discharge(f *feed) {
	n := f.unread.Swap(0)
	if n == 0 {
		return
	}
	b.shares.mu.Lock()
	defer b.shares.mu.Unlock()
	b.shares.unread.Give(f.who, n)
}

// Sizes of what snapshots are made of.
var (
	sizeOfLink   = size[mihf.LinkStatus]() + size[mihf.Forecast]() + size[mihf.LCI]()
	sizeOfFlow   = size[mihf.FlowStatus]()
	sizeOfTuple  = size[mihf.Endpoints]()
	sizeOfSensor = size[mihf.SensorCondition]()
	sizeOfEgress = size[mihf.Egress]()
)

func size[T any]() int64 { return int64(reflect.TypeFor[T]().Size()) } //nolint:gosec // no type is so large

// snapshotBytes returns about what a snapshot holds in memory: the arrays, not the names in
// them, and of links not their facts, which it shares with the engine.
func snapshotBytes(s *mihf.Snapshot) int64 {
	n := size[mihf.Snapshot]() + int64(cap(s.Links))*sizeOfLink + int64(cap(s.Flows))*sizeOfFlow +
		int64(cap(s.Sensors))*sizeOfSensor + int64(cap(s.Egress))*sizeOfEgress
	for i := range s.Flows {
		n += int64(cap(s.Flows[i].Spec.Tuples)) * sizeOfTuple
	}
	return n
}
