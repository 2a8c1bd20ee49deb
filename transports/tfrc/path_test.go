package tfrc

import (
	"container/heap"
	"time"

	"mihf.dev/mihf"
)

// A path joins a greedy sender and a receiver by one link with a rate, a delay and a
// drop-tail queue; reports come back after a delay alone.
type path struct {
	s *Sender
	r *Receiver

	now      mihf.Time
	events   eventHeap
	pushed   int
	bps      float64 // bits a second of the link
	delay    time.Duration
	back     time.Duration
	queue    int // packets
	header   int // bytes
	bytes    int // of application data a packet
	down     bool
	freeAt   mihf.Time // when the link has sent what is queued
	seq      uint64
	sent     int
	dropped  int
	lostDown int
	arrived  int
	drop     func(seq uint64) bool
	stopped  bool
	sender   int // version of the sender's scheduled turn
	receiver int // and of the receiver's
	arrival  func(p *Packet)
	reported func(r *Report)
	turned   func()
	loseBack func() bool
}

func newPath(s *Sender, r *Receiver, bps float64, delay time.Duration) *path {
	p := &path{
		s: s, r: r, bps: bps, delay: delay, back: delay, queue: 50, header: 32, bytes: 500,
		now: mihf.Time(time.Second),
	}
	p.wakeSender()
	return p
}

type timed struct {
	at mihf.Time
	n  int
	do func()
}

type eventHeap []timed

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].n < h[j].n
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(timed)) }
func (h *eventHeap) Pop() any     { o := *h; x := o[len(o)-1]; *h = o[:len(o)-1]; return x }

func (p *path) at(t mihf.Time, do func()) {
	p.pushed++
	heap.Push(&p.events, timed{max(t, p.now), p.pushed, do})
}

// link changes the link's characteristics.
func (p *path) link(bps float64, delay time.Duration) { p.bps, p.delay, p.back = bps, delay, delay }

func (p *path) after(d time.Duration, do func()) { p.at(p.now.Add(d), do) }

// run goes on until d has passed.
func (p *path) run(d time.Duration) {
	end := p.now.Add(d)
	for len(p.events) > 0 && p.events[0].at <= end {
		e := heap.Pop(&p.events).(timed)
		p.now = e.at
		e.do()
	}
	p.now = end
}

// wakeSender plans the sender's next turn.
func (p *path) wakeSender() {
	p.sender++
	version := p.sender
	next := p.s.Next()
	if !p.stopped {
		next = mihf.Sooner(next, p.s.NextSend(p.now))
	}
	if !next.IsZero() {
		p.at(next, func() {
			if version == p.sender {
				p.senderTurn()
			}
		})
	}
}

func (p *path) senderTurn() {
	p.s.Advance(p.now)
	if p.turned != nil {
		p.turned()
	}
	if at := p.s.NextSend(p.now); !p.stopped && at.Due(p.now) {
		p.transmit()
	}
	p.wakeSender()
}

func (p *path) transmit() {
	p.seq++
	k := &Packet{Seq: p.seq, Bytes: p.bytes}
	p.s.Send(p.now, k.Seq, k.Bytes, &k.Header)
	p.sent++
	size := float64(p.bytes+p.header) * 8
	perPacket := time.Duration(size / p.bps * 1e9)
	switch {
	case p.down:
		p.lostDown++
		return
	case p.drop != nil && p.drop(k.Seq):
		p.dropped++
		return
	case p.freeAt.Sub(p.now) > time.Duration(p.queue)*perPacket:
		p.dropped++
		return
	}
	p.freeAt = max(p.freeAt, p.now).Add(perPacket)
	p.at(p.freeAt.Add(p.delay), func() { p.arrive(k) })
}

func (p *path) arrive(k *Packet) {
	if p.down {
		p.lostDown++
		return
	}
	if p.arrival != nil {
		p.arrival(k)
	}
	p.arrived++
	if p.r.Receive(p.now, k) {
		p.report()
	}
	p.wakeReceiver()
}

func (p *path) wakeReceiver() {
	p.receiver++
	version := p.receiver
	if next := p.r.Next(); !next.IsZero() {
		p.at(next, func() {
			if version != p.receiver {
				return
			}
			if p.r.Advance(p.now) {
				p.report()
			}
			p.wakeReceiver()
		})
	}
}

func (p *path) report() {
	rep := new(Report)
	p.r.Report(p.now, rep)
	if p.down || (p.loseBack != nil && p.loseBack()) {
		return
	}
	p.after(p.back, func() {
		if p.reported != nil {
			p.reported(rep)
		}
		p.s.Feedback(p.now, rep)
		p.wakeSender()
	})
}
