package broker_test

import (
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/clock"
)

// "The path sensor → Freeze at the transport is the product: no allocation": from Observe to
// handlers, to a reader and to an attachment.
func TestNoAllocation(t *testing.T) {
	b := start(t, func(c *broker.Config) { c.Clock = clock.Boot() })
	sensor := []*mihf.Observation{rssi(-60), rssi(-85), facts(false), facts(true), heard(), slept()}
	a := b.attach(alice)
	b.register(a, mihf.FlowSpec{Link: wlan, LateFreeze: true, Hints: mihf.Hints(mihf.HintFreeze, mihf.HintUnfreeze)})
	hints := read(t, a, 4)
	done := make(chan struct{}, 1)
	resumed := func(d *mihf.Delivery) bool {
		return d.Kind == mihf.DeliverEvent && d.Event.Kind == mihf.ResumedFromSuspend
	}
	if _, err := b.Handle(t.Context(), alice, mihf.SubscribeRequest{Hints: true}, func(d *mihf.Delivery) {
		if resumed(d) {
			done <- struct{}{}
		}
	}); err != nil {
		t.Fatal(err)
	}
	feed := b.subscribe(alice, mihf.SubscribeRequest{Hints: true})
	buf := make([]mihf.Delivery, 8)
	round := func(kinds ...int) func() {
		return func() {
			for _, k := range kinds {
				o := sensor[k]
				o.At, o.Link = b.Now(), wlan
				b.Observe(o)
			}
			<-done
			for all := false; !all; {
				n, err := feed.Next(buf)
				if err != nil {
					t.Fatal(err)
				}
				for i := range buf[:n] { // hints may come behind it
					all = all || resumed(&buf[i])
				}
			}
		}
	}
	events, walk := round(4, 4, 4, 5), round(0, 1, 2, 3, 5)
	for range 3000 { // the rings grow to their size
		events()
	}
	if got := testing.AllocsPerRun(1000, events); got != 0 {
		t.Errorf("%v allocations for four events, want none", got)
	}
	for range 2000 {
		walk()
	}
	// Link_Up, Path_Usable and the like carry rare payloads, made once each.
	if got := testing.AllocsPerRun(200, walk); got > 20 {
		t.Errorf("%v allocations for a walk out of a cell and back, want the payloads of its few state events", got)
	}
	hints.mu.Lock()
	defer hints.mu.Unlock()
	if len(hints.got) == 0 {
		t.Error("no hint came")
	}
}
