package queue_test

import (
	"errors"
	"fmt"
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/queue"
)

func TestOrderAndFilter(t *testing.T) {
	b := newBench(t, 16, 16)
	all, mine := b.start(&filter{}), b.start(&filter{links: []mihf.LinkID{wwan}, refused: mihf.Kinds(mihf.LinkDetected)})
	b.kept(1)
	b.report(wwan, mihf.ParamRSRP)
	b.hint(wwan)
	b.detected(1)
	b.event(mihf.Event{Kind: mihf.Resync})
	b.want(all, "0>1 link_up", "1>2 link_parameters_report", "2>3 hint", "3>4 link_detected", "4>5 resync")
	b.want(mine, "0>2 link_parameters_report", "2>3 hint", "3>5 resync")
	b.want(all)
}

func TestStartIsBehindEverything(t *testing.T) {
	b := newBench(t, 16, 16)
	b.kept(3)
	b.detected(2)
	b.report(wlan, mihf.ParamRSSI)
	c := b.start(&filter{})
	b.want(c)
	b.kept(1)
	b.want(c, "6>7 link_up")
}

// "NeverDrop kinds and hints are delivered, or the cursor ends with mihf.ErrSlow as soon
// as one that it has not looked at falls out of its ring."
func TestNeverDropOrSlow(t *testing.T) {
	for _, publish := range []func(*bench){func(b *bench) { b.kept(1) }, func(b *bench) { b.hint(wlan) }} {
		for _, refused := range []mihf.KindSet{0, mihf.Kinds(mihf.LinkUp)} {
			b := newBench(t, 4, 4)
			c := b.start(&filter{refused: refused, links: []mihf.LinkID{wwan}})
			for range 4 {
				publish(b)
			}
			if b.log.Overrun(c) {
				t.Fatal("overrun while all is in the ring")
			}
			publish(b)
			if !b.log.Overrun(c) {
				t.Fatal("not overrun when the ring is")
			}
			if n, err := b.log.Read(c, make([]mihf.Delivery, 8)); n != 0 || !errors.Is(err, mihf.ErrSlow) {
				t.Fatalf("read gave %d, %v; want ErrSlow", n, err)
			}
		}
	}
}

// "none of them pushes out another": "To a cursor whose filter passes no hints, nothing that
// happens to hints matters."
func TestHintsHaveTheirRing(t *testing.T) {
	b := newBench(t, 4, 4)
	deaf := &filter{noHints: true}
	blind := &filter{refused: mihf.Kinds(mihf.LinkDetected)}
	b.kept(1)
	c := b.start(deaf)
	b.kept(1)
	for range 100 {
		b.hint(wlan)
	}
	b.kept(1) // 103
	if b.log.Overrun(c) || b.log.Unread(c) != 2 {
		t.Fatalf("by hints alone: overrun %v, %d unread", b.log.Overrun(c), b.log.Unread(c))
	}
	b.want(c, "1>2 link_up", "2>103 link_up")
	b.want(b.resume(deaf, 1), "1>2 link_up", "2>103 link_up")
	if _, ok := b.log.Resume(&filter{}, 97); ok {
		t.Error("resumed behind a hint that is gone")
	}
	b.want(b.resume(&filter{}, 98), "98>99 hint", "99>100 hint", "100>101 hint", "101>102 hint", "102>103 link_up")
	b.detected(100)
	if n := b.log.Unread(b.resume(blind, 98)); n != 4+1+4 {
		t.Errorf("%d unread, want 4 hints, 1 event and 4 detections", n)
	}
	b.want(b.resume(blind, 98), "98>99 hint", "99>100 hint", "100>101 hint", "101>102 hint", "102>103 link_up")
}

// "NewestOnly kinds: of one series the newest is always delivered; the delivery counts
// the older ones it stands for."
func TestConflation(t *testing.T) {
	b := newBench(t, 16, 16)
	c := b.start(&filter{})
	b.report(wlan, mihf.ParamRSSI)
	b.report(wlan, mihf.ParamRTT)
	b.report(wwan, mihf.ParamRSSI)
	b.report(wlan, mihf.ParamRSSI)
	b.kept(1)
	b.report(wlan, mihf.ParamRSSI)
	b.want(c, "0>2 link_parameters_report", "2>3 link_parameters_report", "3>5 link_up", "5>6 link_parameters_report +2")
	b.report(wlan, mihf.ParamRSSI)
	b.want(c, "6>7 link_parameters_report")
	if c.Conflated() != 2 {
		t.Errorf("conflated %d, want 2", c.Conflated())
	}
}

func TestSeriesAreSensorsAndFlows(t *testing.T) {
	b := newBench(t, 16, 16)
	c := b.start(&filter{})
	for _, name := range []string{"a", "b", "a"} {
		b.event(mihf.Event{Kind: mihf.SensorConditionChanged, Condition: &mihf.SensorCondition{Sensor: name}})
		b.event(mihf.Event{Kind: mihf.ShareReport, ShareReport: &mihf.ShareReportPayload{Flow: mihf.FlowID(name)}})
	}
	b.want(c, "0>3 sensor_condition", "3>4 share_report", "4>5 sensor_condition +1", "5>6 share_report +1")
}

// The newest of a series comes even where the ring forgot it, at its place in the order.
func TestNewestSurvivesTheRing(t *testing.T) {
	b := newBench(t, 64, 4)
	c := b.start(&filter{})
	b.report(wlan, mihf.ParamRSSI) // 1
	b.kept(1)
	b.report(wlan, mihf.ParamRTT) // 3: the newest of its series
	b.kept(1)
	b.report(wlan, mihf.ParamRSSI) // 5
	for range 4 {
		b.report(wwan, mihf.ParamRSRP) // 6 to 9
	}
	b.kept(1)
	b.want(c, "0>2 link_up", "2>3 link_parameters_report", "3>4 link_up", "4>5 link_parameters_report",
		"5>9 link_parameters_report +3", "9>10 link_up")
}

// "DropOldest kinds: what fell out of the ring is stated as a gap, at the place in the
// order of the newest that is lost."
func TestDroppedIsStated(t *testing.T) {
	b := newBench(t, 64, 4)
	c, blind := b.start(&filter{}), b.start(&filter{refused: mihf.Kinds(mihf.LinkDetected)})
	b.kept(1)
	b.detected(6) // 2 and 3 fall out
	b.want(c, "0>1 link_up", "1>3 gap from 0: up to 2 link_detected dropped",
		"3>4 link_detected", "4>5 link_detected", "5>6 link_detected", "6>7 link_detected")
	b.want(blind, "0>1 link_up")
	b.detected(4)
	b.want(c, "7>8 link_detected", "8>9 link_detected", "9>10 link_detected", "10>11 link_detected")
}

func TestGapGrowsUntilStated(t *testing.T) {
	b := newBench(t, 64, 2)
	c := b.start(&filter{})
	one := make([]mihf.Delivery, 1)
	b.kept(2)
	b.detected(3) // 3 falls out
	if n, err := b.log.Read(c, one); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	b.kept(1)
	b.detected(2) // 4 and 5 fall out
	b.want(c, "1>2 link_up", "2>5 gap from 0: up to 3 link_detected dropped", "5>6 link_up", "6>7 link_detected", "7>8 link_detected")
}

// "Resuming behind a sequence delivers what follows it under the same rules, or is refused
// where a NeverDrop event that followed it is gone, or a hint where they pass."
func TestResume(t *testing.T) {
	b := newBench(t, 4, 2)
	b.kept(6) // 1 and 2 fall out
	for after, ok := range map[uint64]bool{0: false, 1: false, 2: true, 3: true, 6: true, 7: false} {
		if _, got := b.log.Resume(&filter{}, after); got != ok {
			t.Errorf("resume behind %d: got %v, want %v", after, got, ok)
		}
	}
	b.want(b.resume(&filter{}, 4), "4>5 link_up", "5>6 link_up")
	b.want(b.resume(&filter{}, 6))
	b.report(wlan, mihf.ParamRSSI) // 7
	b.detected(3)                  // 8 falls out
	b.want(b.resume(&filter{}, 5), "5>6 link_up", "6>7 link_parameters_report",
		"7>8 gap from 5: link_detected dropped", "8>9 link_detected", "9>10 link_detected")
	b.want(b.resume(&filter{}, 8), "8>9 link_detected", "9>10 link_detected")
	b.want(b.resume(&filter{}, 9), "9>10 link_detected")
}

// "The newest items of 16,384 series are kept": the one silent longest is forgotten, and
// what is said of it later is delivered and counted rightly.
func TestSeriesAreBounded(t *testing.T) {
	const limit = 1 << 14
	b := newBench(t, 4, 2)
	share := func(i int) {
		b.event(mihf.Event{Kind: mihf.ShareReport, ShareReport: &mihf.ShareReportPayload{Flow: mihf.FlowID(fmt.Sprint(i))}})
	}
	share(0)
	share(0)
	c := b.start(&filter{})
	for i := range limit {
		share(1 + i)
	}
	late := b.resume(&filter{}, 0)
	b.event(mihf.Event{Kind: mihf.LinkUp})
	got := 0
	buf := make([]mihf.Delivery, 100)
	for n := 1; n > 0; got += n {
		var err error
		if n, err = b.log.Read(late, buf); err != nil {
			t.Fatal(err)
		}
		for _, d := range buf[:n] {
			if d.Kind == mihf.DeliverEvent && d.Event.Kind == mihf.ShareReport && d.Event.ShareReport.Flow == "0" {
				t.Error("the forgotten series was delivered")
			}
		}
	}
	if got != limit+1 {
		t.Errorf("%d deliveries, want %d series and one link_up", got, limit)
	}
	share(0)
	for range 2 {
		if n, err := b.log.Read(c, buf); err != nil || n == 0 {
			t.Fatal(n, err)
		}
	}
}

// What a cursor has yet to make up for is found anew when the ring outruns it again.
func TestBehindTwice(t *testing.T) {
	b := newBench(t, 64, 2)
	c := b.start(&filter{})
	for _, p := range []mihf.Parameter{1, 2, 3} {
		b.report(wlan, p)
	}
	b.detected(2) // the reports fall out
	one := make([]mihf.Delivery, 1)
	if n, err := b.log.Read(c, one); n != 1 || err != nil || one[0].Sequence() != 1 {
		t.Fatal(n, err, one[0].Sequence())
	}
	b.report(wwan, 1) // 6
	b.detected(3)     // 4, 5, 6 and 7 fall out
	b.want(c, "1>2 link_parameters_report", "2>3 link_parameters_report", "3>6 link_parameters_report",
		"6>7 gap from 1: up to 3 link_detected dropped", "7>8 link_detected", "8>9 link_detected")
}

// A series that is forgotten while a cursor counts what it stood for leaves nothing there.
func TestForgottenSeriesIsNotCounted(t *testing.T) {
	b := &bench{T: t, log: queue.NewLogOf(queue.Sizes{Kept: 64, Hints: 64, Loose: 2}, 1)}
	c := b.start(&filter{})
	b.kept(1)
	b.report(wlan, 1)
	b.kept(1)
	b.report(wlan, 1)
	two := make([]mihf.Delivery, 2)
	if n, err := b.log.Read(c, two); n != 2 || err != nil || c.Skipped() != 1 {
		t.Fatal(n, err, c.Skipped())
	}
	b.report(wlan, 2)
	b.report(wlan, 3) // of 4 neither the item nor the series is there any more
	b.want(c, "3>5 link_parameters_report", "5>6 link_parameters_report")
	if c.Skipped() != 0 {
		t.Errorf("%d series are counted still", c.Skipped())
	}
}

func TestSequenceMustRise(t *testing.T) {
	b := newBench(t, 4, 4)
	b.kept(1)
	defer func() {
		if recover() == nil {
			t.Error("a sequence that does not rise was taken")
		}
	}()
	b.seq = 0
	b.kept(1)
}

// "Append and Read allocate nothing once the rings have their size."
func TestNoAllocation(t *testing.T) {
	b := newBench(t, 64, 64)
	c := b.start(&filter{})
	buf := make([]mihf.Delivery, 16)
	round := func() {
		b.kept(4)
		b.hint(wlan)
		b.detected(3)
		b.report(wlan, mihf.ParamRSSI)
		b.report(wwan, mihf.ParamRSRP)
		for n := 1; n > 0; {
			var err error
			if n, err = b.log.Read(c, buf); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 32 {
		round()
	}
	if got := testing.AllocsPerRun(100, round); got != 0 {
		t.Errorf("%v allocations a round, want none", got)
	}
}

// A ring grows to its bound, whatever place it has come to, and keeps what is in it.
func TestRingsGrow(t *testing.T) {
	b := newBench(t, 256, 256)
	b.kept(10)
	c := b.start(&filter{})
	b.kept(240)
	b.detected(200)
	buf := make([]mihf.Delivery, 500)
	if n, err := b.log.Read(c, buf); n != 440 || err != nil {
		t.Fatal(n, err)
	}
	for i := range buf[:440] {
		if d := &buf[i]; d.Sequence() != uint64(11+i) || d.Previous != uint64(10+i) {
			t.Fatalf("delivery %d behind %d, want %d", d.Sequence(), d.Previous, 11+i)
		}
	}
	b.kept(7) // 1 falls out
	if _, ok := b.log.Resume(&filter{}, 0); ok {
		t.Error("resumed behind what is gone")
	}
	if _, ok := b.log.Resume(&filter{}, 1); !ok {
		t.Error("not resumed behind what is there")
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		give queue.Sizes
		want int
	}{
		{queue.Sizes{}, min(queue.DefaultKept, queue.DefaultHints)},
		{queue.Sizes{Kept: -1, Hints: 1 << 20}, queue.DefaultKept},
		{queue.Sizes{Kept: 1 << 20, Hints: -1}, queue.DefaultHints},
		{queue.Sizes{Kept: 1, Hints: 2}, 1},
		{queue.Sizes{Kept: 5, Hints: 16}, 8},
		{queue.Sizes{Kept: 16, Hints: 4, Loose: 1}, 4},
	} {
		if got := queue.NewLog(c.give).Room(); got != c.want {
			t.Errorf("%+v: room for %d, want %d", c.give, got, c.want)
		}
	}
}
