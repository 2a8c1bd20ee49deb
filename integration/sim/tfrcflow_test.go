package sim

import (
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/transports/tfrc"
)

func tfrcPath(s *Sim) (down *Link, flow *TFRCFlow) {
	down = NewLink(s, LinkConfig{Name: "down", RateBPS: 11e6, Delay: 10 * time.Millisecond, QueuePackets: 50})
	up := NewLink(s, LinkConfig{Name: "up", RateBPS: 11e6, Delay: 10 * time.Millisecond, QueuePackets: 50})
	c := TFRCConfig{Flow: 1, SegmentBytes: 500, HeaderBytes: 32, FeedbackBytes: 52}
	c.Sender.Variant, c.Receiver.Variant, c.Receiver.FirstSeq = tfrc.CCID3, tfrc.CCID3, 1
	return down, NewTFRCFlow(s, c, []Hop{down}, []Hop{up})
}

// A flow takes the link, and its round-trip time is the path's with the queue in it.
func TestTFRCFillsTheLink(t *testing.T) {
	s := New(1)
	_, f := tfrcPath(s)
	bytes := 0
	f.OnDeliver = func(mihf.Time, *Packet, uint64) {
		if s.Elapsed() > 10*time.Second {
			bytes += 500
		}
	}
	f.Start(0)
	s.Run(30 * time.Second)
	payload := 11e6 / 8 * 500 / 532
	if rate := float64(bytes) / 20; rate < 0.95*payload || rate > 1.001*payload {
		t.Errorf("%.0f of %.0f bytes/s", rate, payload)
	}
	if r := f.RTT(); r < 20*time.Millisecond || r > 45*time.Millisecond {
		t.Errorf("round trip %v", r)
	}
}

// A frozen flow sends nothing; what was on its way arrives; then it goes on at once.
func TestTFRCFlowFreezes(t *testing.T) {
	s := New(1)
	down, f := tfrcPath(s)
	f.Start(0)
	s.Run(10 * time.Second)
	f.Freeze(time.Minute)
	sent := f.Sent()
	s.Run(10*time.Second + f.RTT())
	down.SetDown()
	s.Run(13 * time.Second)
	down.SetUp()
	if f.Sent() != sent || f.Sender.State() != tfrc.Frozen {
		t.Fatalf("%d packets were sent while frozen, state %v", f.Sent()-sent, f.Sender.State())
	}
	if d := down.Stats().Dropped; d[Down]+d[Flushed]+d[Cut] != 0 {
		t.Fatalf("dropped: %v", d)
	}
	f.Unfreeze(tfrc.Thaw{})
	if f.Sent() == sent {
		t.Error("nothing was sent at the thaw")
	}
}

// paced gives a packet when it is told to.
type paced struct{ next, given uint64 }

func (p *paced) Next(mihf.Time) (uint64, bool) {
	if !p.Waiting() {
		return 0, false
	}
	p.given++
	return 1000 + p.given, true
}

func (p *paced) Waiting() bool { return p.given < p.next }

// A flow with a source sends what the source has, under its names.
func TestTFRCFlowWithSource(t *testing.T) {
	s := New(1)
	down := NewLink(s, LinkConfig{Name: "down", RateBPS: 11e6, Delay: 10 * time.Millisecond, QueuePackets: 50})
	up := NewLink(s, LinkConfig{Name: "up", RateBPS: 11e6, Delay: 10 * time.Millisecond, QueuePackets: 50})
	src := &paced{}
	f := NewTFRCFlow(s, TFRCConfig{SegmentBytes: 500, HeaderBytes: 32, FeedbackBytes: 52, Source: src}, []Hop{down}, []Hop{up})
	var tags []uint64
	f.OnDeliver = func(_ mihf.Time, _ *Packet, tag uint64) { tags = append(tags, tag) }
	f.Start(0)
	for i := range 3 {
		s.At(time.Duration(10+i)*time.Second, func() {
			src.next++
			f.Wake()
		})
	}
	s.Run(20 * time.Second)
	if len(tags) != 3 || tags[0] != 1001 || tags[2] != 1003 {
		t.Errorf("tags %v", tags)
	}
}
