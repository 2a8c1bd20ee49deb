package broadcast_test

import (
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"mihf.dev/clients/broadcast"
	"mihf.dev/mihf"
	front "mihf.dev/mihf/front/broadcast"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const boot = mihf.BootID(7)

var (
	links = []mihf.LinkID{"wifi-00000001", "wwan-00000002", ""}
	flows = []mihf.FlowID{"a", "b"}
)

// message draws the one with a sequence.
func message(t *rapid.T, sequence uint64) mihf.Delivery {
	if rapid.Bool().Draw(t, "hint") {
		f := rapid.SampledFrom(flows).Draw(t, "flow")
		return mihf.Delivery{Kind: mihf.DeliverHint, Hint: mihf.Hint{
			Boot: boot, Sequence: sequence, Flow: f, Link: rapid.SampledFrom(links).Draw(t, "link"), Kind: mihf.HintFreeze,
		}}
	}
	kind := rapid.SampledFrom([]mihf.Kind{mihf.LinkUp, mihf.LinkDown, mihf.LinkParametersReport}).Draw(t, "kind")
	return mihf.Delivery{Kind: mihf.DeliverEvent, Event: mihf.Event{
		Boot: boot, Sequence: sequence, Link: rapid.SampledFrom(links).Draw(t, "link"), Kind: kind,
	}}
}

func key(d *mihf.Delivery) string {
	if d.Kind == mihf.DeliverHint {
		return "flow " + string(d.Hint.Flow)
	}
	return "link " + string(d.Event.Link)
}

func keys() (all []string) {
	for _, l := range links {
		all = append(all, "link "+string(l))
	}
	for _, f := range flows {
		all = append(all, "flow "+string(f))
	}
	return all
}

// Whatever is lost on the way: deliveries are in order, each once, and nothing comes behind
// a loss on its link or flow.
func TestLossIsSeen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var chains front.Chains
		chains.Break(rapid.Uint64Range(0, 5).Draw(rt, "begun at"))
		reached := rapid.Uint64Range(5, 15).Draw(rt, "reached")
		live := make(chan broadcast.Live, 128) // more than are sent
		lostOn, seen := map[string]bool{}, map[string]uint64{}
		var want []uint64
		for sequence := uint64(6); sequence < 40; sequence++ {
			d := message(rt, sequence)
			if rapid.IntRange(0, 20).Draw(rt, "break") == 0 {
				chains.Break(sequence - 1)
				for _, k := range keys() { // unless its newest message is the one that the break names
					lostOn[k] = lostOn[k] || sequence-1 > max(reached, seen[k])
				}
			}
			l := broadcast.Live{Delivery: d, Chain: chains.Next(&d)}
			if rapid.IntRange(0, 10).Draw(rt, "lost") == 0 {
				dropped := d.Kind == mihf.DeliverEvent && d.Event.Kind.Admission() != mihf.NeverDrop
				lostOn[key(&d)] = lostOn[key(&d)] || (!dropped && sequence > reached)
				continue
			}
			live <- l
			seen[key(&d)] = sequence
			if rapid.IntRange(0, 5).Draw(rt, "twice") == 0 {
				live <- l
			}
			if sequence > reached {
				if lostOn[key(&d)] {
					break // the stream ends here
				}
				want = append(want, sequence)
			}
		}
		end := mihf.Delivery{Kind: mihf.DeliverEvent, Event: mihf.Event{Boot: boot, Sequence: 1000, Link: "end", Kind: mihf.LinkUp}}
		live <- broadcast.Live{Delivery: end} // behind a loss it is not reached
		s := broadcast.New(broadcast.Options{
			Request: mihf.SubscribeRequest{Hints: true, After: reached}, Boot: boot, Reached: reached, Live: live,
		})
		defer s.Close()
		buf := make([]mihf.Delivery, rapid.IntRange(1, 5).Draw(rt, "room"))
		var got []uint64
		previous := reached
		for previous != 1000 {
			n, err := s.Next(buf)
			for i := range buf[:n] {
				if buf[i].Previous != previous {
					rt.Fatalf("delivery %d follows %d, not %d", buf[i].Sequence(), buf[i].Previous, previous)
				}
				if previous = buf[i].Sequence(); previous != 1000 {
					got = append(got, previous)
				}
			}
			if err != nil {
				if !errors.Is(err, broadcast.ErrLost) || !errors.Is(err, mihf.ErrSlow) {
					rt.Fatal(err)
				}
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// What was caught up with goes first; only what is wanted comes.
func TestFilter(t *testing.T) {
	live := make(chan broadcast.Live, 8)
	event := func(sequence, chain uint64, l mihf.LinkID, k mihf.Kind) {
		live <- broadcast.Live{Chain: chain, Delivery: mihf.Delivery{
			Kind: mihf.DeliverEvent, Event: mihf.Event{Boot: boot, Sequence: sequence, Link: l, Kind: k},
		}}
	}
	event(9, 0, links[0], mihf.LinkUp) // caught up with
	event(11, 9, links[0], mihf.LinkDown)
	event(12, 0, links[1], mihf.LinkUp) // another link
	event(13, 11, links[0], mihf.LinkUp)
	event(14, 0, "", mihf.LinkUp) // of no link
	s := broadcast.New(broadcast.Options{
		Request:  mihf.SubscribeRequest{Links: links[:1], Kinds: mihf.Kinds(mihf.LinkUp)},
		CaughtUp: []mihf.Delivery{{Kind: mihf.DeliverSnapshot, Snapshot: &mihf.Snapshot{Sequence: 10, Boot: boot}}},
		Boot:     boot, Reached: 10, Live: live,
	})
	defer s.Close()
	buf := make([]mihf.Delivery, 4)
	if n, err := s.Next(buf); n != 1 || err != nil || buf[0].Kind != mihf.DeliverSnapshot {
		t.Fatalf("%d, %v", n, err)
	}
	n, err := s.Next(buf)
	if n != 2 || err != nil || buf[0].Sequence() != 13 || buf[0].Previous != 10 || buf[1].Sequence() != 14 || buf[1].Previous != 13 {
		t.Errorf("%+v, %v", buf[:n], err)
	}
}

// A stream ends for what its client says, for another run of the broker, and when closed.
func TestEnds(t *testing.T) {
	buf := make([]mihf.Delivery, 1)
	why := errors.New("gone")
	ended := make(chan struct{})
	close(ended)
	full := make(chan broadcast.Live, 1)
	full <- broadcast.Live{Delivery: mihf.Delivery{Kind: mihf.DeliverEvent, Event: mihf.Event{Boot: boot, Sequence: 1}}}
	if _, err := broadcast.New(broadcast.Options{Boot: boot, Live: full, Lost: ended, Why: func() error { return why }}).Next(buf); !errors.Is(err, why) {
		t.Error(err)
	}
	if _, err := broadcast.New(broadcast.Options{Boot: boot + 1, Live: full}).Next(buf); !errors.Is(err, broadcast.ErrLost) {
		t.Errorf("another run: %v", err)
	}
	if _, err := broadcast.New(broadcast.Options{Request: mihf.SubscribeRequest{Present: true}}).Next(buf); !errors.Is(err, io.EOF) {
		t.Errorf("nothing was present: %v", err)
	}
	closes := 0
	s := broadcast.New(broadcast.Options{Close: func() { closes++ }})
	s.Close()
	s.Close()
	if _, err := s.Next(buf); !errors.Is(err, mihf.ErrClosed) || closes != 1 {
		t.Errorf("%v, closed %d times", err, closes)
	}
	if _, err := s.Next(nil); !errors.Is(err, mihf.ErrInvalid) {
		t.Errorf("no room: %v", err)
	}
}
