package tcp

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

const start = mihf.Time(time.Second)

// RFC 2018, 4: "The first SACK block MUST specify the contiguous block of data containing the
// segment which triggered this ACK"; RFC 2883: a duplicate is reported first.
func TestBlocks(t *testing.T) {
	r := NewReceiver(ReceiverConfig{SACK: true, AckDelay: -1})
	for _, step := range []struct {
		seq    uint64
		next   uint64
		blocks []Block
		dsack  bool
	}{
		{0, 1, nil, false},
		{2, 1, []Block{{2, 3}}, false},
		{4, 1, []Block{{4, 5}, {2, 3}}, false},
		{6, 1, []Block{{6, 7}, {4, 5}, {2, 3}}, false},
		{8, 1, []Block{{8, 9}, {6, 7}, {4, 5}}, false},
		{3, 1, []Block{{2, 5}, {8, 9}, {6, 7}}, false},
		{3, 1, []Block{{3, 4}, {2, 5}, {8, 9}}, true},
		{0, 1, []Block{{0, 1}, {2, 5}, {8, 9}}, true},
		{1, 5, []Block{{8, 9}, {6, 7}}, false},
		{5, 7, []Block{{8, 9}}, false},
		{7, 9, nil, false},
	} {
		a, ok := r.OnSegment(start, Segment{Seq: step.seq})
		if !ok || a.Next != step.next || a.DSACK != step.dsack {
			t.Fatalf("segment %d: %+v, %v", step.seq, a, ok)
		}
		if d := cmp.Diff(step.blocks, append([]Block(nil), a.Blocks[:a.Used]...)); d != "" {
			t.Fatalf("segment %d (-want +got)\n%s", step.seq, d)
		}
	}
	if r.Delivered != 9 || r.Duplicates != 2 {
		t.Errorf("delivered %d, duplicates %d", r.Delivered, r.Duplicates)
	}
}

// RFC 5681, 4.2: an acknowledgement at least for every second segment and within the delay, at
// once for what is out of order or fills a gap. RFC 7323, 4.3: it echoes the older of the two.
func TestDelayedAcks(t *testing.T) {
	r := NewReceiver(ReceiverConfig{})
	take := func(seq uint64, at mihf.Time, want bool) Ack {
		t.Helper()
		a, ok := r.OnSegment(at, Segment{Seq: seq, Sent: at - 5})
		if ok != want {
			t.Fatalf("segment %d: acknowledged %v, want %v", seq, ok, want)
		}
		return a
	}
	take(0, start, false)
	if r.Next() != start.Add(200*time.Millisecond) {
		t.Fatalf("due at %v", r.Next())
	}
	if a := take(1, start+10, true); a.Echo != start-5 || a.Next != 2 {
		t.Fatalf("%+v", a)
	}
	if r.Next() != 0 {
		t.Fatal("still due")
	}
	take(2, start+20, false)
	if _, ok := r.Advance(start + 30); ok {
		t.Fatal("too early")
	}
	if a, ok := r.Advance(r.Next()); !ok || a.Next != 3 || a.Echo != start+15 {
		t.Fatalf("%+v, %v", a, ok)
	}
	take(4, start+40, true)
	if a := take(3, start+50, true); a.Next != 5 || a.Echo != start+45 {
		t.Fatalf("%+v", a)
	}
}

// A segment beyond the window is not taken; the acknowledgement says how far it goes.
func TestReceiveWindow(t *testing.T) {
	r := NewReceiver(ReceiverConfig{Window: 2, AckDelay: -1})
	if a, ok := r.OnSegment(start, Segment{Seq: 2}); !ok || a.Next != 0 || a.Window != 2 {
		t.Errorf("%+v, %v", a, ok)
	}
	if a, _ := r.OnSegment(start, Segment{Seq: 0}); a.Next != 1 {
		t.Errorf("%+v", a)
	}
	if a := r.SetWindow(0); a.Window != 0 || a.Next != 1 {
		t.Errorf("%+v", a)
	}
	if a, ok := r.OnSegment(start, Segment{Seq: 1, Probe: true}); !ok || a.Next != 1 {
		t.Errorf("a probe into a closed window: %+v, %v", a, ok)
	}
}

// "Whatever the network does …, every segment is delivered in the end, once and in order." The
// board's counts are those that a recount gives, at every step.
func TestDelivery(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := uint64(rapid.IntRange(1, 80).Draw(t, "segments"))
		control := rapid.SampledFrom([]func(float64) Control{NewReno, NewCUBIC, NewBBR}).Draw(t, "control")
		c := Config{
			Segments: n, Recovery: Recovery(rapid.IntRange(0, int(ByTime)).Draw(t, "recovery")), Control: control,
			MaxWindow: rapid.IntRange(0, 12).Draw(t, "limit"),
		}
		s := NewSender(c)
		r := NewReceiver(ReceiverConfig{SACK: c.Recovery != ByDuplicates, Window: rapid.IntRange(1, 20).Draw(t, "window")})
		bad := rapid.SliceOfN(rapid.IntRange(0, 3), 40, 200).Draw(t, "fates")
		fate := func(i int) int { // all is well in the end
			if i < len(bad) {
				return bad[i]
			}
			return 3
		}
		network(t, s, r, n, fate)
		if r.Delivered != n || s.Acknowledged() != n {
			t.Fatalf("delivered %d of %d, acknowledged %d", r.Delivered, n, s.Acknowledged())
		}
	})
}

// network carries segments and acknowledgements until nothing is left to do. A fate of 0 loses
// one, 1 doubles it, 2 delays it.
func network(t *rapid.T, s *Sender, r *Receiver, n uint64, fate func(int) int) {
	type event struct {
		at mihf.Time
		g  Segment
		a  Ack
		to bool // the receiver
	}
	now, sent := start, 0
	var flying []event
	put := func(e event) {
		e.at = now.Add(10 * time.Millisecond)
		switch fate(sent) {
		case 0:
		case 1:
			flying = append(flying, e, e)
		case 2:
			e.at = e.at.Add(15 * time.Millisecond)
			flying = append(flying, e)
		default:
			flying = append(flying, e)
		}
		sent++
	}
	for range 100_000 {
		for g, ok := s.Poll(now); ok; g, ok = s.Poll(now) {
			put(event{g: g, to: true})
		}
		recount(t, s)
		at, first := mihf.Sooner(s.Next(), r.Next()), -1
		for i, e := range flying {
			if at.IsZero() || e.at < at || (first < 0 && e.at == at) {
				at, first = e.at, i
			}
		}
		if at.IsZero() || (s.Acknowledged() == n && len(flying) == 0) {
			return
		}
		now = at
		if first < 0 {
			s.Advance(now)
			if a, ok := r.Advance(now); ok {
				put(event{a: a})
			}
			continue
		}
		e := flying[first]
		flying = append(flying[:first], flying[first+1:]...)
		if !e.to {
			s.OnAck(now, e.a)
		} else if a, ok := r.OnSegment(now, e.g); ok {
			put(event{a: a})
		}
	}
	t.Fatal("it doesn't end")
}

func recount(t *rapid.T, s *Sender) {
	b := &s.board
	var sacked, lost, resent int
	for seq := b.una; seq < b.high; seq++ {
		f := b.at(seq)
		if f.sacked {
			sacked++
		}
		if f.lost {
			lost++
		}
		if f.times > 1 {
			resent++
		}
		if f.sacked && f.lost {
			t.Fatalf("segment %d is both lost and received", seq)
		}
	}
	if sacked != b.sacked || lost != b.lost || resent != b.resent || b.pipe() < 0 {
		t.Fatalf("counts %d %d %d, recounted %d %d %d", b.sacked, b.lost, b.resent, sacked, lost, resent)
	}
}
