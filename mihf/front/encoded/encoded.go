// Package encoded keeps the newest events in their protobuf form, so that each is encoded
// once, whatever the number of fronts and of their subscribers.
//
// # Guarantees
//
//   - The same event of the same run gives the same octets while it is kept.
//   - A subscriber that is behind does not push out what the others need.
//   - Memory is bounded: [slots] events.
//
// The octets are shared: nobody may change them. Ages in an event count from its encoding,
// whose time comes with it; who sends it later says how much later (held).
//
// Shell: it takes a lock; any goroutine may use it.
package encoded

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
)

// slots is how many events are kept; a power of two.
const slots = 256

// Events are encoded events. Make it with [New].
type Events struct {
	node  mihf.NodeID
	now   func() mihf.Time
	slots [slots]struct {
		mu       sync.Mutex // guards the following
		boot     mihf.BootID
		sequence uint64
		at       mihf.Time // of the encoding
		bytes    []byte
	}
}

// New returns an empty store for the events of a node, by whose clock now is.
func New(node mihf.NodeID, now func() mihf.Time) *Events { return &Events{node: node, now: now} }

// Node returns the name that the events carry.
func (c *Events) Node() mihf.NodeID { return c.node }

// Event returns an event as mih.v1.Event and when that was made.
func (c *Events) Event(ev *mihf.Event) ([]byte, mihf.Time, error) {
	s := &c.slots[ev.Sequence%slots]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes != nil && s.sequence == ev.Sequence && s.boot == ev.Boot {
		return s.bytes, s.at, nil
	}
	at := c.now()
	b, err := proto.Marshal(conv.Encoder{Now: at, Wall: time.Now(), Node: c.node}.Event(ev))
	if err != nil {
		return nil, 0, fmt.Errorf("encoding event %d (%v): %w", ev.Sequence, ev.Kind, err)
	}
	if s.bytes == nil || ev.Boot != s.boot || ev.Sequence > s.sequence {
		s.boot, s.sequence, s.at, s.bytes = ev.Boot, ev.Sequence, at, b
	}
	return b, at, nil
}
