package tfrc

import (
	"testing"
	"time"

	"mihf.dev/mihf"
)

// exchange is one packet from the sender's leave to the receiver, on a path of 10 ms each
// way that loses one packet in 5,000, with the reports that come of it in their time.
func exchange(s *Sender, r *Receiver) func() {
	const delay = 10 * time.Millisecond
	var (
		now  = mihf.Time(time.Second)
		p    = Packet{Bytes: 1400}
		rep  Report
		back mihf.Time // when rep arrives; zero: none is under way
	)
	return func() {
		now = max(now, s.NextSend(now))
		if back.Due(now) {
			s.Feedback(back, &rep)
			back = 0
		}
		p.Seq++
		if p.Seq%5000 == 0 {
			p.Seq++ // lost
			s.Send(now, p.Seq-1, p.Bytes, &p.Header)
		}
		s.Send(now, p.Seq, p.Bytes, &p.Header)
		arrives := now.Add(delay)
		due := r.Next().Due(arrives) && r.Advance(arrives)
		if (r.Receive(arrives, &p) || due) && back.IsZero() {
			r.Report(arrives, &rep)
			back = arrives.Add(delay)
		}
		if s.Next().Due(now) {
			s.Advance(now)
		}
	}
}

func BenchmarkPacket(b *testing.B) {
	for _, v := range []Variant{RFC5348, CCID3} {
		b.Run(v.String(), func(b *testing.B) {
			one := exchange(NewSender(SenderConfig{Variant: v}), NewReceiver(ReceiverConfig{Variant: v}))
			b.ReportAllocs()
			for b.Loop() {
				one()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpackets/s")
		})
	}
}

// "No allocation after the constructor."
func TestNoAllocations(t *testing.T) {
	for _, v := range []Variant{RFC5348, CCID3} {
		one := exchange(NewSender(SenderConfig{Variant: v}), NewReceiver(ReceiverConfig{Variant: v}))
		if n := testing.AllocsPerRun(20000, one); n != 0 {
			t.Errorf("%v: %v allocations a packet", v, n)
		}
	}
}
