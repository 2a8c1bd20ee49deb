package wifi

import (
	"context"
	"fmt"
	"testing"
	"time"

	"mihf.dev/integration/netns"
	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf/clock"
)

// A handedOver is a station that loses one access point and finds the next of the same network,
// with its address, for the three kinds of flow.
type handedOver struct {
	outage               time.Duration // from the last data frame of the first to the first of the next
	hinted, bare         losses        // after: sent while there was no link
	tcpAfter             int           // segments sent while there was none
	resumed, bareResumed time.Duration // from the usable path to the first packet received
	tcpResumed           time.Duration
}

// handOvers has a station walk out of one access point's reach while another one of the network
// is there, which the supplicant looks for only when the first is lost.
func handOvers(t *testing.T, count int) (list []handedOver) {
	t.Helper()
	b := start(t)
	b.moveFar()
	b.far.Bridge("br0")
	d := b.daemonWith(setup{fronts: 1})
	n := network{bridge: "br0"}
	l := &lane{radio: station, name: ifname(station), link: d.link, n: 1, rtt: 60 * time.Millisecond}
	d.Join(station, ap1, medium.Steady(-55))
	d.accessPoint(ap1, 1, n)
	d.accessPoint(ap2, 6, n)
	d.far.AddAddr("br0", l.far()+"/24", 0, 0)
	d.home.AddAddr(l.name, l.near()+"/24", 0, 0)
	d.supplicantOn(l.name, n)
	d.attached([]*lane{l})
	// Without a way out no path is usable.
	d.home.AddRoute(netns.Route{Dst: "0.0.0.0/0", Dev: l.name, Via: l.far()})
	from, to := ap1, ap2
	for i := range count {
		l.pace, l.seed = slowest+(fastest-slowest)*(float64(i)+0.5)/float64(count), uint64(200+i)
		list = append(list, d.handOver(l, from, to))
		from, to = to, from
	}
	return list
}

func (d *daemon) handOver(l *lane, from, to medium.Radio) (h handedOver) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hinted, bare, tcp := d.stream(ctx, l), d.stream(ctx, l), d.tcp(ctx, l)
	hinted.hinted(ctx, d, l)
	d.SetLoss(medium.SNR{})
	begin := clock.Boot().Now()
	d.Join(l.radio, to, medium.Steady(-50))
	d.Join(l.radio, from, l.walk())
	time.Sleep(standing)
	d.eventually("the next access point", func() bool {
		s, err := d.client().Parameters(d.t.Context(), l.link)
		return err == nil && s.Up && s.PoA == d.address(to)
	})
	usable := clock.Boot().Now()
	time.Sleep(5 * time.Second)
	last := d.Truth(from, l.radio).LastData
	cancel()
	hinted.wait()
	bare.wait()
	tcp.wait()
	next := bare.firstAfter(last.Add(100 * time.Millisecond))
	h = handedOver{
		outage: next.Sub(last), hinted: hinted.between(last, usable), bare: bare.between(last, usable),
		tcpAfter: tcp.between(last, usable),
		resumed:  hinted.firstAfter(usable).Sub(usable), bareResumed: bare.firstAfter(usable).Sub(usable),
		tcpResumed: tcp.firstAfter(usable).Sub(usable),
	}
	d.t.Logf("%.1f dB/s: %v; %v until it was usable", l.pace, h, usable.Sub(begin))
	d.Join(l.radio, from, medium.Silence{})
	d.SetLoss(medium.NoLoss{})
	return h
}

func (h handedOver) String() string {
	return fmt.Sprintf("outage %v; sent without a link: hints %d, none %d, TCP %d; received again after %v, %v, %v",
		h.outage, h.hinted.after, h.bare.after, h.tcpAfter, h.resumed, h.bareResumed, h.tcpResumed)
}

// A hand-over after a loss: the flow that obeys hints sends nothing without a link and goes on
// when the path is usable.
func TestHandOver(t *testing.T) {
	for _, h := range handOvers(t, 1) {
		if h.hinted.after > 0 || h.bare.after == 0 {
			t.Errorf("%d packets with hints and %d without were sent without a link", h.hinted.after, h.bare.after)
		}
		if h.resumed < 0 || h.resumed > time.Second {
			t.Errorf("it went on %v after the path was usable", h.resumed)
		}
	}
}

func (p *page) handovers(list []handedOver) {
	fmt.Fprintf(p, "## Hand-over after a loss\n\n%d times a station walked out of reach of one access point, and its supplicant found the next one of the network; the address stayed.\n\n", len(list))
	p.WriteString("| flow | runs with nothing sent without a link | sent without a link, mean | received again after the path was usable, mean |\n|---|---|---|---|\n")
	for _, c := range []struct {
		name    string
		after   func(handedOver) int
		resumed func(handedOver) time.Duration
	}{
		{"UDP with hints", func(h handedOver) int { return h.hinted.after }, func(h handedOver) time.Duration { return h.resumed }},
		{"UDP without", func(h handedOver) int { return h.bare.after }, func(h handedOver) time.Duration { return h.bareResumed }},
		{"kernel TCP (segments)", func(h handedOver) int { return h.tcpAfter }, func(h handedOver) time.Duration { return h.tcpResumed }},
	} {
		none, sent, resumed := 0, 0, time.Duration(0)
		for _, h := range list {
			if c.after(h) == 0 {
				none++
			}
			sent += c.after(h)
			resumed += c.resumed(h)
		}
		n := len(list)
		fmt.Fprintf(p, "| %s | %d of %d | %.1f | %d ms |\n", c.name, none, n, float64(sent)/float64(n), (resumed / time.Duration(n)).Milliseconds())
	}
	p.WriteString("\n")
}
