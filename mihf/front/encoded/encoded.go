// Package encoded keeps the newest events in an encoded form, so that each is encoded once,
// whatever the number of subscribers and of fronts that share the form.
//
// # Guarantees
//
//   - The same event of the same run gives the same form while it is kept.
//   - A subscriber that is behind does not push out what the others need.
//   - Memory is bounded: [slots] events.
//
// A form is shared: nobody may change it. Ages in an event count from its encoding, whose
// time comes with it; who sends it later says how much later (held).
//
// A store that hides points of attachment ([Hidden]) is apart from one that does not: a front
// takes what its listeners may have.
//
// Shell: it takes a lock; any goroutine may use it.
package encoded

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/pseudonym"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
)

// slots is how many events are kept; a power of two.
const slots = 256

// Forms are encoded events. Make them with [New] or [NewForms].
type Forms[T any] struct {
	node  mihf.NodeID
	now   func() mihf.Time
	key   *pseudonym.Key
	poa   func(mihf.PoA) mihf.PoA // of key; nil: ids of points of attachment are sent as they are
	form  func(*mihv1.Event) (T, error)
	slots [slots]slot[T]
}

type slot[T any] struct {
	mu       sync.Mutex // guards the following
	full     bool
	boot     mihf.BootID
	sequence uint64
	at       mihf.Time // of the encoding
	form     T
}

// Events are events as the octets of mih.v1.Event.
type Events = Forms[[]byte]

// New returns an empty store of octets for the events of a node, by whose clock now is.
func New(node mihf.NodeID, now func() mihf.Time) *Events {
	return NewForms(node, now, func(p *mihv1.Event) ([]byte, error) { return proto.Marshal(p) })
}

// Hidden is [New] for listeners on other hosts: key takes the place of ids of points of
// attachment. With no key it is New.
func Hidden(node mihf.NodeID, now func() mihf.Time, key *pseudonym.Key) *Events {
	f := New(node, now)
	if f.key = key; key != nil {
		f.poa = key.PoA
	}
	return f
}

// NewForms is [New] for what form makes of a message.
func NewForms[T any](node mihf.NodeID, now func() mihf.Time, form func(*mihv1.Event) (T, error)) *Forms[T] {
	return &Forms[T]{node: node, now: now, form: form}
}

// Node returns the name that the events carry.
func (f *Forms[T]) Node() mihf.NodeID { return f.node }

// Key returns what hides ids of points of attachment; nil: nothing does.
func (f *Forms[T]) Key() *pseudonym.Key { return f.key }

// Encoder returns one for messages that are sent now, beside the events.
func (f *Forms[T]) Encoder() conv.Encoder {
	return conv.Encoder{Now: f.now(), Wall: time.Now(), Node: f.node, PoA: f.poa}
}

// HintEncoder returns one for a hint that is sent at the moment now; hints carry no wall time.
func (f *Forms[T]) HintEncoder(now mihf.Time) conv.Encoder {
	return conv.Encoder{Now: now, Node: f.node, PoA: f.poa}
}

// Event returns an event's form and when that was made. It fails where the form's maker does.
func (f *Forms[T]) Event(ev *mihf.Event) (form T, at mihf.Time, err error) {
	s := &f.slots[ev.Sequence%slots]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full && s.sequence == ev.Sequence && s.boot == ev.Boot {
		return s.form, s.at, nil
	}
	e := f.Encoder()
	at = e.Now
	form, err = f.form(e.Event(ev))
	if err != nil {
		return form, 0, fmt.Errorf("encoding event %d (%v): %w", ev.Sequence, ev.Kind, err)
	}
	if !s.full || ev.Boot != s.boot || ev.Sequence > s.sequence {
		s.full, s.boot, s.sequence, s.at, s.form = true, ev.Boot, ev.Sequence, at, form
	}
	return form, at, nil
}
