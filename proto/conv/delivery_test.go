package conv

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

func TestDelivery(t *testing.T) {
	enc, dec := Encoder{Now: now, Node: "n"}, Decoder{Now: now}
	for _, tc := range []struct {
		name string
		draw func(gen) (mihf.Delivery, *mihv1.SubscribeResponse)
	}{
		{"event", func(g gen) (mihf.Delivery, *mihv1.SubscribeResponse) {
			d := mihf.Delivery{Kind: mihf.DeliverEvent, Event: g.event(mihf.LinkUp)}
			return d, &mihv1.SubscribeResponse{Item: &mihv1.SubscribeResponse_Event{Event: enc.Event(&d.Event)}}
		}},
		{"hint", func(g gen) (mihf.Delivery, *mihv1.SubscribeResponse) {
			d := mihf.Delivery{Kind: mihf.DeliverHint, Hint: g.hint(mihf.HintFreeze)}
			return d, &mihv1.SubscribeResponse{Item: &mihv1.SubscribeResponse_Hint{Hint: enc.Hint(&d.Hint)}}
		}},
		{"snapshot", func(g gen) (mihf.Delivery, *mihv1.SubscribeResponse) {
			d := mihf.Delivery{Kind: mihf.DeliverSnapshot, Snapshot: g.snapshot()}
			return d, &mihv1.SubscribeResponse{Item: &mihv1.SubscribeResponse_Snapshot{Snapshot: enc.Snapshot(d.Snapshot)}}
		}},
		{"gap", func(g gen) (mihf.Delivery, *mihv1.SubscribeResponse) {
			d := mihf.Delivery{Kind: mihf.DeliverGap, Gap: mihf.Gap{From: g.u64(), To: g.u64(), Reason: g.text()}}
			return d, &mihv1.SubscribeResponse{Item: &mihv1.SubscribeResponse_Gap{Gap: EncodeGap(&d.Gap)}}
		}},
	} {
		t.Run(tc.name, rapid.MakeCheck(func(rt *rapid.T) {
			want, p := tc.draw(gen{rt})
			want.Previous, want.Conflated = gen{rt}.u64(), gen{rt}.u32()
			p.Previous, p.Conflated = want.Previous, want.Conflated
			if !KnownKind(p) {
				rt.Fatal("the kind is not known")
			}
			got, err := dec.Delivery(wire(rt, p, &mihv1.SubscribeResponse{}))
			wantSame(rt, want, got, err)
		}))
	}
}

// What a newer broker added is told apart from what is wrong.
func TestDeliveryOfUnknownKind(t *testing.T) {
	for _, p := range []*mihv1.SubscribeResponse{
		{},
		{Item: &mihv1.SubscribeResponse_Event{Event: &mihv1.Event{BootId: "00000003"}}},
		{Item: &mihv1.SubscribeResponse_Hint{Hint: &mihv1.Hint{BootId: "00000003"}}},
	} {
		_, err := Decoder{Now: now}.Delivery(p)
		if KnownKind(p) || !errors.Is(err, mihf.ErrInvalid) {
			t.Errorf("%v: known %v, %v", p, KnownKind(p), err)
		}
	}
}
