package dccp

import (
	"testing"

	"pgregory.net/rapid"
)

// states takes Ack Vector options apart, newest packet first.
func states(t interface{ Fatalf(string, ...any) }, b []byte) (all []byte) {
	r := ReadOptions(b)
	for o := (Option{}); r.Next(&o); {
		if o.Type != optAckVector0 {
			t.Fatalf("option %d", o.Type)
		}
		for _, run := range o.Data {
			for range run&63 + 1 {
				all = append(all, run>>6)
			}
		}
	}
	return all
}

// The vector must tell, of every packet that it covers, what a plain list of arrivals
// tells, and cover everything that was not yet acknowledged.
func TestAckVectorAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v ackVector
		first := Seq(rapid.Uint64Range(0, seqMask).Draw(t, "first"))
		arrived := map[Seq]bool{}
		newest, low, at := first, first, Seq(0)
		arrived[first] = true
		v.add(first)
		told := map[Seq]Seq{}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"next", "next", "jump", "old", "tell", "acked"}).Draw(t, "step") {
			case "next":
				newest = newest.Add(1)
				arrived[newest] = true
				v.add(newest)
			case "jump":
				newest = newest.Add(int64(rapid.IntRange(2, 200).Draw(t, "gap")))
				arrived[newest] = true
				v.add(newest)
			case "old":
				seq := newest.Add(-int64(rapid.IntRange(0, 150).Draw(t, "back")))
				if !seq.Before(v.low) {
					arrived[seq] = true
				}
				v.add(seq)
			case "tell":
				if !v.empty() {
					at++
					told[at] = v.newest
					v.told(at)
				}
			case "acked":
				a := Seq(rapid.IntRange(0, int(at)).Draw(t, "acked"))
				v.acked(a)
				if x, ok := told[a]; ok && !x.Before(low) {
					low = x.Add(1)
				}
			}
			got := states(t, v.append(nil))
			if v.low != low {
				t.Fatalf("covers from %d, must from %d", v.low, low)
			}
			if v.newest != newest {
				t.Fatalf("newest %d, want %d", v.newest, newest)
			}
			for i, s := range got {
				seq := newest.Add(-int64(i))
				if (s == stateReceived) != arrived[seq] {
					t.Fatalf("packet %d: state %d, arrived %v", seq, s, arrived[seq])
				}
			}
			if len(got) != int(newest.Sub(low))+1 {
				t.Fatalf("%d states from %d to %d", len(got), low, newest)
			}
			if n := v.optionBytes(); n != len(v.append(nil)) {
				t.Fatalf("says %d bytes, has %d", n, len(v.append(nil)))
			}
		}
	})
}

// RFC 4340, section 11.4: the example of the text.
func TestAckVectorExample(t *testing.T) {
	var v ackVector
	for s := Seq(88); s <= 100; s++ {
		if s != 99 {
			v.add(s)
		}
	}
	want := []byte{optAckVector0, 5, 0, 192, 10}
	if got := v.append(nil); string(got) != string(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAckVectorIsBounded(t *testing.T) {
	var v ackVector
	for s := Seq(0); s < 4000; s += 2 { // every other one lost
		v.add(s)
	}
	if len(v.runs) > maxRuns || v.forgotten == 0 {
		t.Errorf("%d runs, %d forgotten", len(v.runs), v.forgotten)
	}
	if got := states(t, v.append(nil)); len(got) != int(v.newest.Sub(v.low))+1 {
		t.Errorf("%d states from %d to %d", len(got), v.low, v.newest)
	}
	v.add(1 << 40)
	if got := states(t, v.append(nil)); len(got) != 1 {
		t.Errorf("%d states after a jump", len(got))
	}
}

// RFC 4340, section 11.7: the example of the text, 0,160,3 and three drops.
func TestDataDropped(t *testing.T) {
	var v ackVector
	if got := v.appendDrops(nil, 100, maxOptionData+2); len(got) != 0 {
		t.Errorf("nothing dropped: %v", got)
	}
	for _, s := range []Seq{93, 94, 99} {
		v.dropped(s, DropReceiveBuffer)
	}
	want := []byte{optDataDropped, 7, 0, 0x80 | 2<<4, 3, 0x80 | 2<<4, 0x80 | 2<<4}
	if got := v.appendDrops(nil, 100, maxOptionData+2); string(got) != string(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for s := Seq(101); s < 101+2*maxDrops; s++ {
		v.dropped(s, DropCorrupt)
	}
	if len(v.drops) != maxDrops {
		t.Errorf("%d drops kept", len(v.drops))
	}
	if got := v.appendDrops(nil, 1<<30, maxOptionData+2); len(got) != 0 {
		t.Errorf("too far back to tell, yet %d bytes", len(got))
	}
}
