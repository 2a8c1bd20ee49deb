package broadcast

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a broker whose subscriptions give what is written, one after another.
type script struct {
	front.Broker
	subscriptions []subscription
	asked         []mihf.SubscribeRequest
	status        mihf.Status
}

type subscription struct {
	gives []mihf.Delivery
	err   error // at its end
}

func (s *script) Status(context.Context, mihf.Caller) (mihf.Status, error) { return s.status, nil }

func (s *script) Subscribe(_ context.Context, _ mihf.Caller, req mihf.SubscribeRequest) (mihf.Feed, error) {
	s.asked = append(s.asked, req)
	next := s.subscriptions[0]
	s.subscriptions = s.subscriptions[1:]
	return &scripted{subscription: next}, nil
}

type scripted struct {
	mihf.Feed
	subscription
}

func (f *scripted) Close() {}

func (f *scripted) Next(buf []mihf.Delivery) (int, error) {
	n := copy(buf[:2], f.gives)
	if f.gives = f.gives[n:]; n == 0 {
		return 0, f.err
	}
	return n, nil
}

func event(sequence uint64, link mihf.LinkID) mihf.Delivery {
	return mihf.Delivery{Kind: mihf.DeliverEvent, Event: mihf.Event{Boot: 3, Sequence: sequence, Link: link, Kind: mihf.LinkUp}}
}

func hint(sequence uint64, flow mihf.FlowID) mihf.Delivery {
	return mihf.Delivery{Kind: mihf.DeliverHint, Hint: mihf.Hint{Boot: 3, Sequence: sequence, Flow: flow}}
}

func snapshot(sequence uint64) mihf.Delivery {
	return mihf.Delivery{Kind: mihf.DeliverSnapshot, Snapshot: &mihf.Snapshot{Boot: 3, Sequence: sequence}}
}

// Each message names the one before it on its chain; what was missed breaks all chains; a
// subscription that was too slow is resumed where it was.
func TestRun(t *testing.T) {
	b := &script{subscriptions: []subscription{
		{[]mihf.Delivery{snapshot(4), event(5, "a"), hint(6, "f"), event(7, "b"), event(8, "a"), hint(9, "f")}, mihf.ErrSlow},
		{[]mihf.Delivery{event(10, "a"), {Kind: mihf.DeliverGap, Gap: mihf.Gap{From: 10, To: 20}}, event(21, "a"), hint(22, "f"), event(23, "a")}, mihf.ErrClosed},
	}}
	type message struct{ Sequence, Chain uint64 }
	var got []message
	err := Run(t.Context(), b, mihf.Caller{}, func(m Message) { got = append(got, message{m.Sequence(), m.Chain}) })
	if !errors.Is(err, mihf.ErrClosed) {
		t.Error(err)
	}
	want := []message{{4, 0}, {5, 4}, {6, 4}, {7, 4}, {8, 5}, {9, 6}, {10, 8}, {20, 0}, {21, 20}, {22, 20}, {23, 21}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wantAsked := []mihf.SubscribeRequest{{Hints: true}, {Hints: true, After: 9, Boot: 3}}
	if diff := cmp.Diff(wantAsked, b.asked); diff != "" {
		t.Error(diff)
	}
}

// What may be dropped is on no chain: it names the one before it, and nothing names it.
func TestDroppableIsOnNoChain(t *testing.T) {
	var c Chains
	report := event(7, "a")
	report.Event.Kind = mihf.LinkParametersReport
	for _, x := range []struct {
		d    mihf.Delivery
		want uint64
	}{{event(5, "a"), 0}, {report, 5}, {event(9, "a"), 5}} {
		if previous := c.Next(&x.d); previous != x.want {
			t.Errorf("%d follows %d, want %d", x.d.Sequence(), previous, x.want)
		}
	}
}

// The end of its context is no error.
func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := &script{subscriptions: []subscription{{[]mihf.Delivery{snapshot(1)}, context.Canceled}}}
	if err := Run(ctx, b, mihf.Caller{}, func(Message) { cancel() }); err != nil {
		t.Error(err)
	}
}

// Too many links to tell apart break the chains, and are forgotten.
func TestChainsAreBounded(t *testing.T) {
	var c Chains
	for i := range uint64(3 * maxChains) {
		d := event(i+1, mihf.LinkID(rune(i)))
		d.Event.Link = mihf.LinkID([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
		if previous := c.Next(&d); previous != i/maxChains*maxChains {
			t.Fatalf("link %d follows %d", i, previous)
		}
		if len(c.links) > maxChains {
			t.Fatalf("%d links are known", len(c.links))
		}
	}
}

func TestCatchUp(t *testing.T) {
	b := &script{
		status: mihf.Status{Boot: 3, Sequence: 11},
		subscriptions: []subscription{
			{[]mihf.Delivery{event(5, "a"), event(9, "a")}, io.EOF},
			{[]mihf.Delivery{event(12, "a")}, io.EOF},
			{nil, mihf.ErrSlow},
			{[]mihf.Delivery{event(12, "a"), event(13, "a")}, io.EOF},
		},
	}
	catchUp := func(each func(*mihf.Delivery) error) (Reached, error) {
		return CatchUp(t.Context(), b, mihf.Caller{}, mihf.SubscribeRequest{After: 4, Boot: 3}, each)
	}
	for _, want := range []struct {
		told    int
		reached uint64
	}{{2, 11}, {1, 12}} { // 12 came after the status was asked for
		told := 0
		reached, err := catchUp(func(*mihf.Delivery) error { told++; return nil })
		if err != nil || told != want.told || reached != (Reached{3, want.reached}) {
			t.Errorf("told %d up to %+v, %v; want %+v", told, reached, err, want)
		}
	}
	if _, err := catchUp(func(*mihf.Delivery) error { return nil }); !errors.Is(err, mihf.ErrSlow) {
		t.Error(err)
	}
	full := errors.New("full")
	if _, err := catchUp(func(*mihf.Delivery) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	if !b.asked[0].Present || b.asked[0].After != 4 {
		t.Errorf("asked for %+v", b.asked[0])
	}
}
