package mihnats

import (
	"fmt"
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/natsfront"
)

// BenchmarkSubscribers is how a thousand subscribers at ten events a second fare: what each
// missed, and how late the last had an event.
func BenchmarkSubscribers(b *testing.B) {
	const many, rate = 1000, 10
	w := newBed(b)
	w.ctx = b.Context()
	broker, _ := w.broker(1, node)
	f, _ := w.serve(natsfront.Options{Broker: broker, Embedded: &natsfront.Embedded{
		Listen: "127.0.0.1:0", Users: []natsfront.User{{Name: user, Secret: secret}},
	}})
	missed, late := make(chan int, many), make(chan time.Duration, many)
	for range many {
		c := w.dial("nats://"+f.Addr().String(), Options{User: user, Password: secret, Node: node, Timeout: time.Minute})
		feed, err := c.Follow(b.Context(), mihf.SubscribeRequest{Kinds: mihf.Kinds(mihf.ResumedFromSuspend)})
		w.must(err)
		go func() {
			defer feed.Close()
			next, holes, worst := 0, 0, time.Duration(0)
			buf := make([]mihf.Delivery, 1)
			for next < b.N {
				if _, err := feed.Next(buf); err != nil {
					break
				}
				if buf[0].Kind != mihf.DeliverEvent {
					continue
				}
				if n := int(buf[0].Event.Gap) - 1; n != next {
					holes++
				}
				next = int(buf[0].Event.Gap)
				worst = max(worst, broker.Now().Sub(buf[0].Event.At))
			}
			missed <- holes + b.N - next
			late <- worst
		}()
	}
	for n := range b.N {
		time.Sleep(time.Second / rate)
		mark(broker, n+1)
	}
	total, worst := 0, time.Duration(0)
	for range many {
		total += <-missed
		worst = max(worst, <-late)
	}
	b.ReportMetric(float64(total), "missed")
	b.ReportMetric(float64(worst.Milliseconds()), "worst-ms")
	if total > 0 {
		b.Error(fmt.Sprint(total, " missed"))
	}
}
