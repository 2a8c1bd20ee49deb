package tfrc

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

// Whatever a peer reports, the rate stays a number within its bounds, the timer is set,
// and a packet may go within the longest time there is.
func TestHostileReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewSender(SenderConfig{
			SegmentBytes:           500,
			Variant:                rapid.SampledFrom([]Variant{RFC5348, CCID3}).Draw(t, "variant"),
			NoOscillationReduction: rapid.Bool().Draw(t, "steady"),
			FasterRestart:          rapid.Bool().Draw(t, "faster"),
		})
		now, seq := mihf.Time(time.Hour), uint64(1<<48)
		var h Header
		numbers := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 1, math.Inf(1), math.NaN(), math.MaxFloat64, 1e-300}))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "pause")))
			s.Advance(now)
			if rapid.Bool().Draw(t, "send") {
				seq++
				s.Send(now, seq, rapid.IntRange(0, 9000).Draw(t, "bytes"), &h)
			}
			switch rapid.IntRange(0, 9).Draw(t, "freeze") {
			case 0:
				s.Freeze(now, time.Second)
			case 1:
				s.Unfreeze(now, Thaw{Path: Path{
					Capacity: Rate(math.Abs(rapid.Float64().Draw(t, "capacity"))),
					RTT:      time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "rtt")),
				}})
			}
			r := Report{
				Seq:         seq - rapid.Uint64Range(0, 20).Draw(t, "back"),
				SentAt:      mihf.Time(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "sent")),
				Delay:       time.Duration(rapid.Int64().Draw(t, "delay")),
				ReceiveRate: Rate(numbers.Draw(t, "rate")), LossRate: numbers.Draw(t, "p"),
				Options: Options(rapid.Byte().Draw(t, "options")),
			}
			r.Intervals.Skip = rapid.Byte().Draw(t, "skip")
			for range rapid.IntRange(0, ReportedIntervals).Draw(t, "intervals") {
				r.Intervals.Append(Interval{
					Lossless: rapid.Uint32().Draw(t, "lossless"), Loss: rapid.Uint32().Draw(t, "loss"),
					Data: float64(rapid.Uint32().Draw(t, "data")),
				})
			}
			s.Feedback(now, &r)
			for _, x := range []Rate{s.Rate(), s.PacedRate()} {
				if !(x >= s.minRate()*0.999) || math.IsInf(float64(x), 0) {
					t.Fatalf("rate %v, floor %v, after %+v", x, s.minRate(), r)
				}
			}
			at := s.NextSend(now)
			if s.State() != Frozen && at.Sub(now) > 200*MaxBackoff {
				t.Fatalf("the next packet may go in %v", at.Sub(now))
			}
			if next := s.Next(); s.timer != 0 && (next.IsZero() || next < now) {
				t.Fatalf("the timer is at %v, now is %v", next, now)
			}
		}
	})
}

// Whatever arrives, what is kept is bounded, what is reported is a number, and intervals
// add up to no more than the sequence numbers there were.
func TestHostilePackets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := NewReceiver(ReceiverConfig{
			Variant:  rapid.SampledFrom([]Variant{RFC5348, CCID3}).Draw(t, "variant"),
			FirstSeq: rapid.Uint64Range(0, 5).Draw(t, "first"),
		})
		now, base := mihf.Time(time.Hour), uint64(1)
		var rep Report
		for range rapid.IntRange(1, 200).Draw(t, "packets") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "pause")))
			base += rapid.SampledFrom([]uint64{0, 0, 1, 1, 1, 2, 7, 1000, 1 << 40}).Draw(t, "step")
			p := Packet{
				Seq:     max(base-min(base, rapid.Uint64Range(0, 12).Draw(t, "late")), 1),
				NonData: rapid.Bool().Draw(t, "other"), NonDataBefore: rapid.Uint32().Draw(t, "ndp"),
				Bytes: rapid.IntRange(0, 9000).Draw(t, "bytes"), Marked: rapid.IntRange(0, 5).Draw(t, "mark") == 0,
			}
			p.RTT = time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "rtt"))
			p.WindowCounter = rapid.Uint8Range(0, counterValues-1).Draw(t, "counter")
			p.Options = Options(rapid.Byte().Draw(t, "options"))
			due := r.Next().Due(now) && r.Advance(now)
			if !r.Receive(now, &p) && !due {
				continue
			}
			r.Report(now, &rep)
			x, loss := float64(rep.ReceiveRate), rep.LossRate
			if !(x >= 0) || math.IsInf(x, 0) || !(loss >= 0 && loss <= 1) {
				t.Fatalf("report %+v", rep)
			}
			total := uint64(rep.Intervals.Skip)
			for i := range rep.Intervals.Len() {
				v := rep.Intervals.At(i)
				total += uint64(v.Lossless) + uint64(v.Loss)
				if v.Data < 0 || (i > 0 && i < rep.Intervals.Len()-1 && v.Data < 1) {
					t.Fatalf("interval %d: %+v", i, v)
				}
			}
			if total > rep.Seq {
				t.Fatalf("intervals of %d packets, only %d were there", total, rep.Seq)
			}
		}
	})
}
