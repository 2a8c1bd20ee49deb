package queue_test

import (
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/queue"
)

// BenchmarkAppendRead is one event through a log and through a buffered channel.
func BenchmarkAppendRead(b *testing.B) {
	for name, e := range map[string]mihf.Event{
		"event=link_detected": {Kind: mihf.LinkDetected, Link: wlan},
		"event=report":        {Kind: mihf.LinkParametersReport, Link: wlan},
		"event=link_up":       {Kind: mihf.LinkUp, Link: wlan},
	} {
		b.Run(name+"/impl=bare", func(b *testing.B) {
			b.ReportAllocs()
			c := make(chan mihf.Event, 64)
			for b.Loop() {
				e.Sequence++
				c <- e
				<-c
			}
		})
		b.Run(name+"/impl=ours", func(b *testing.B) {
			b.ReportAllocs()
			l := queue.NewLog(queue.Sizes{})
			c := l.Start(&filter{})
			buf := make([]mihf.Delivery, 1)
			for b.Loop() {
				e.Sequence++
				l.AppendEvent(&e)
				if n, err := l.Read(&c, buf); n != 1 || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}
