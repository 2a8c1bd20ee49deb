package dbusfront

import (
	"sync"
	"time"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	"mihf.dev/proto/variant"
)

// slots is how many events are kept as dictionaries; a power of two.
const slots = 64

// dicts keeps the newest events as dictionaries, so that each is turned into one once for the
// broadcast and all streams. Nobody may change them.
type dicts struct {
	node  mihf.NodeID
	now   func() mihf.Time
	slots [slots]struct {
		mu       sync.Mutex // guards the following
		boot     mihf.BootID
		sequence uint64
		at       mihf.Time // of the encoding
		dict     variant.Dict
	}
}

// event returns an event's dictionary and when it was made.
func (c *dicts) event(ev *mihf.Event) (variant.Dict, mihf.Time) {
	s := &c.slots[ev.Sequence%slots]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dict != nil && s.sequence == ev.Sequence && s.boot == ev.Boot {
		return s.dict, s.at
	}
	at := c.now()
	dict := variant.Encode(conv.Encoder{Now: at, Wall: time.Now(), Node: c.node}.Event(ev))
	if s.dict == nil || ev.Boot != s.boot || ev.Sequence > s.sequence { // who is behind pushes out nothing newer
		s.boot, s.sequence, s.at, s.dict = ev.Boot, ev.Sequence, at, dict
	}
	return dict, at
}

// held returns how long ago something was encoded, in nanoseconds.
func (c *dicts) held(at mihf.Time) int64 { return max(0, int64(c.now().Sub(at))) }

// hint returns a hint's dictionary, made now. Hints carry no wall time.
func (s *Server) hint(h *mihf.Hint) variant.Dict {
	return variant.Encode(conv.Encoder{Now: s.o.Broker.Now(), Node: s.dicts.node}.Hint(h))
}

// delivery returns what a subscription gives as mih.v1.SubscribeResponse.
func (s *Server) delivery(d *mihf.Delivery) variant.Dict {
	out := variant.Dict{}
	set := func(key string, v any) { out[key] = dbus.MakeVariant(v) }
	if d.Previous != 0 {
		set("previous", d.Previous)
	}
	if d.Conflated != 0 {
		set("conflated", d.Conflated)
	}
	switch d.Kind {
	case mihf.DeliverEvent:
		dict, at := s.dicts.event(&d.Event)
		set("event", dict)
		if held := s.dicts.held(at); held != 0 {
			set("held_ns", held)
		}
	case mihf.DeliverHint:
		set("hint", s.hint(&d.Hint))
	case mihf.DeliverSnapshot:
		set("snapshot", variant.Encode(s.encoder().Snapshot(d.Snapshot)))
	case mihf.DeliverGap:
		set("gap", variant.Encode(conv.EncodeGap(&d.Gap)))
	}
	return out
}
