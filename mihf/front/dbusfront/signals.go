package dbusfront

import (
	"errors"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/broadcast"
	"mihf.dev/proto/conv"
	"mihf.dev/proto/dbusapi"
	"mihf.dev/proto/variant"
)

// headStart is how old an event is when it is sent to all: the bus passes on one message after
// another, and the hints of the same moment go first.
const headStart = 200 * time.Microsecond

// broadcast sends every event to all who listen, until the connection or the broker ends.
func (b *bus) broadcast() {
	err := broadcast.Run(b.ctx, b.s.o.Broker, b.s.o.Self, func(m broadcast.Message) {
		b.touch()
		if !b.s.o.Public() || (m.Kind != mihf.DeliverEvent && m.Kind != mihf.DeliverGap) {
			return // hints go to who registered the flow; a snapshot is for who asks
		}
		if young := headStart - b.s.o.Broker.Now().Sub(m.Event.At); m.Kind == mihf.DeliverEvent && young > 0 {
			sleep(b.ctx, young)
		}
		b.announce(m)
	})
	if err != nil && !errors.Is(err, mihf.ErrClosed) {
		b.s.log.Error("no events are broadcast", "error", err)
	}
}

// announce sends a message to all. It fails only where the connection has ended, which shows
// everywhere.
func (b *bus) announce(m broadcast.Message) {
	switch m.Kind {
	case mihf.DeliverEvent:
		ev := &m.Event
		path, iface := dbusapi.LinkPath(ev.Link), dbusapi.LinkInterface
		if dbusapi.OfNoLink.Has(ev.Kind) {
			path, iface = dbusapi.Root, dbusapi.BrokerInterface
		}
		_ = b.emit(b.ctx, "", path, iface, dbusapi.EventSignal(ev.Kind), func() []any {
			dict, heldNs := b.s.event(ev)
			return []any{m.Chain, heldNs, dict, m.Conflated}
		})
	case mihf.DeliverGap:
		_ = b.emit(b.ctx, "", dbusapi.Root, dbusapi.BrokerInterface, dbusapi.SignalGap, these(variant.Encode(conv.EncodeGap(&m.Gap))))
	default: // there are no others here
	}
}
