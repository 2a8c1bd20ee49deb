package encoded

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/pseudonym"
	mihv1 "mihf.dev/proto/mih/v1"
)

// An event is encoded once for all its subscribers, also for one who is behind.
func TestEventIsEncodedOnce(t *testing.T) {
	encodings := 0
	c := New("n", func() mihf.Time { encodings++; return mihf.Time(time.Hour) })
	event := func(boot mihf.BootID, sequence uint64) []byte {
		t.Helper()
		b, at, err := c.Event(&mihf.Event{Boot: boot, Sequence: sequence, Kind: mihf.LinkUp, At: 1})
		if err != nil {
			t.Fatal(err)
		}
		var p mihv1.Event
		if err := proto.Unmarshal(b, &p); err != nil || p.GetSequence() != sequence || p.GetBootId() != boot.String() || p.GetNode() != "n" {
			t.Fatalf("event %d of %v came back as %v, %v", sequence, boot, &p, err)
		}
		if at != mihf.Time(time.Hour) {
			t.Errorf("encoded at %v", at)
		}
		return b
	}
	a, b := event(1, 5), event(1, 5)
	if encodings != 1 || &a[0] != &b[0] {
		t.Errorf("encoded %d times", encodings)
	}
	event(1, 5+slots)
	event(1, 5) // of one who is behind: does not push out the newer one
	if encodings = 0; event(1, 5+slots) == nil || encodings != 0 {
		t.Error("the newer event was pushed out")
	}
	event(2, 5) // another run
}

// A store that hides is apart: it, and what is encoded beside its events, has pseudonyms alone.
func TestHidden(t *testing.T) {
	now, key := func() mihf.Time { return 5 }, &pseudonym.Key{7}
	ev := mihf.Event{Boot: 1, Sequence: 5, Kind: mihf.LinkUp, Up: &mihf.Up{PoA: "a"}}
	for want, f := range map[mihf.PoA]*Events{"a": New("n", now), key.PoA("a"): Hidden("n", now, key)} {
		for range 2 {
			b, _, err := f.Event(&ev)
			var p mihv1.Event
			if err != nil || proto.Unmarshal(b, &p) != nil || p.GetLinkUp().GetPoa() != string(want) {
				t.Errorf("%v, %v; want %q", &p, err, want)
			}
		}
		l := mihf.LCI{PoA: "a"}
		if a, b := f.Encoder().LCI(&l).GetPoa(), f.HintEncoder(1).LCI(&l).GetPoa(); a != string(want) || b != string(want) {
			t.Errorf("%q, %q; want %q", a, b, want)
		}
	}
	if f := Hidden("n", now, nil); f.Key() != nil || f.Encoder().PoA != nil {
		t.Error("no key hides nothing")
	}
}
