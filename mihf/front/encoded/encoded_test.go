package encoded

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
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
