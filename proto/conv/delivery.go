package conv

import (
	"fmt"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// KnownKind reports whether a delivery is of a kind that is known here; a newer broker may
// have added others. Nothing is missing without one of those.
func KnownKind(p *mihv1.SubscribeResponse) bool {
	switch item := p.GetItem().(type) {
	case *mihv1.SubscribeResponse_Event:
		return item.Event.GetKind() != nil
	case *mihv1.SubscribeResponse_Hint:
		return item.Hint.GetKind() != nil
	default:
		return item != nil
	}
}

// Delivery reads a delivery of a subscription. One of no kind that is known is refused
// with mihf.ErrInvalid.
func (d Decoder) Delivery(p *mihv1.SubscribeResponse) (out mihf.Delivery, err error) {
	out = mihf.Delivery{Previous: p.GetPrevious(), Conflated: p.GetConflated()}
	switch item := p.GetItem().(type) {
	case *mihv1.SubscribeResponse_Event:
		out.Kind = mihf.DeliverEvent
		out.Event, err = d.Event(item.Event)
	case *mihv1.SubscribeResponse_Hint:
		out.Kind = mihf.DeliverHint
		out.Hint, err = d.Hint(item.Hint)
	case *mihv1.SubscribeResponse_Snapshot:
		out.Kind = mihf.DeliverSnapshot
		out.Snapshot, err = d.Snapshot(item.Snapshot)
	case *mihv1.SubscribeResponse_Gap:
		out.Kind, out.Gap = mihf.DeliverGap, DecodeGap(item.Gap)
	default:
		err = fmt.Errorf("%w: a delivery of no kind that is known", mihf.ErrInvalid)
	}
	return out, err
}
