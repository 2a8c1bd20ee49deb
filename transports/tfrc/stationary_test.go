package tfrc

import (
	"testing"
	"time"
)

// A lone flow settles where the throughput equation meets the capacity: it fills the link,
// with the round-trip time that its queue makes.
func TestStationaryRates(t *testing.T) {
	const header, bytes = 32, 500
	for _, link := range []struct {
		name  string
		bps   float64
		delay time.Duration
	}{
		{"UMTS", 384e3, 126 * time.Millisecond},
		{"wide", 2e6, 41 * time.Millisecond},
		{"fast", 3e6, 11 * time.Millisecond},
	} {
		for _, v := range []Variant{RFC5348, CCID3} {
			t.Run(link.name+"/"+v.String(), func(t *testing.T) {
				p := newPath(NewSender(SenderConfig{Variant: v, SegmentBytes: bytes}), NewReceiver(ReceiverConfig{Variant: v}), link.bps, link.delay)
				p.run(60 * time.Second)
				before := p.arrived
				p.run(60 * time.Second)
				capacity := link.bps / 8 * bytes / (bytes + header)
				got := float64(p.arrived-before) * bytes / 60
				near(t, "received", got, capacity, 0.03)
				near(t, "allowed", float64(p.s.Rate()), capacity, 0.25)
				near(t, "equation", float64(Throughput(bytes, p.s.RTT(), p.s.LossRate())), float64(p.s.Rate()), 0.6)
				if lost := float64(p.dropped) / float64(p.sent); lost > 0.02 {
					t.Errorf("lost %.3f of what was sent", lost)
				}
			})
		}
	}
}
