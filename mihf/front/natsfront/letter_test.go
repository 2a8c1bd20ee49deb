package natsfront

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/natsproto"
)

// Each letter says what its own hint says, and nothing of the one before.
func TestLetter(t *testing.T) {
	l := newLetter("_INBOX.alice.s")
	for _, h := range []mihf.Hint{
		{Sequence: 5, Boot: 1, Flow: "01M8QC2T73B2MWC057237QX72H", Link: wlan, Epoch: 7, Kind: mihf.HintFreeze, Freeze: mihf.Freeze{Lease: 3e9}},
		{Sequence: 9, Boot: 1, Flow: "F", Kind: mihf.HintUnfreeze, Unfreeze: mihf.Unfreeze{Cause: mihf.UnfreezeRollback}},
	} {
		now := mihf.Time(h.Sequence * 1000)
		m, err := l.write(&mihf.Delivery{Kind: mihf.DeliverHint, Previous: h.Sequence - 1, Hint: h}, conv.Encoder{Now: now, Node: node})
		if err != nil {
			t.Fatal(err)
		}
		e, err := natsproto.ParseEnvelope(natsproto.Header(m.Header))
		want := natsproto.Envelope{Type: natsproto.TypeHint, Previous: h.Sequence - 1, At: now}
		if err != nil || e != want {
			t.Errorf("%+v, %v; want %+v", e, err, want)
		}
		var p mihv1.Hint
		if err := proto.Unmarshal(m.Data, &p); err != nil {
			t.Fatal(err)
		}
		if p.GetSequence() != h.Sequence || p.GetFlow() != string(h.Flow) || (p.GetFreeze() != nil) != (h.Kind == mihf.HintFreeze) || p.GetLink() != string(h.Link) {
			t.Errorf("%v", &p)
		}
	}
}
