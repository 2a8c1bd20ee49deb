package dbusfront

import (
	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/variant"
)

// dictOfEvent is the form in which events are kept, so that each is made a dictionary once for
// the broadcast and all streams.
func dictOfEvent(p *mihv1.Event) (variant.Dict, error) { return variant.Encode(p), nil }

// event returns an event's dictionary, which nobody may change, and how long ago it was made,
// in nanoseconds.
func (s *Server) event(ev *mihf.Event) (dict variant.Dict, heldNs int64) {
	dict, at, _ := s.dicts.Event(ev) // dictOfEvent does not fail
	return dict, max(0, int64(s.o.Broker.Now().Sub(at)))
}

// hint returns a hint's dictionary, made now. Hints carry no wall time.
func (s *Server) hint(h *mihf.Hint) variant.Dict {
	return variant.Encode(s.dicts.HintEncoder(s.o.Broker.Now()).Hint(h))
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
		dict, held := s.event(&d.Event)
		set("event", dict)
		if held != 0 {
			set("held_ns", held)
		}
	case mihf.DeliverHint:
		set("hint", s.hint(&d.Hint))
	case mihf.DeliverSnapshot:
		set("snapshot", variant.Encode(s.dicts.Encoder().Snapshot(d.Snapshot)))
	case mihf.DeliverGap:
		set("gap", variant.Encode(conv.EncodeGap(&d.Gap)))
	}
	return out
}
