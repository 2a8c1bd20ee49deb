package tcp

import (
	"time"

	"mihf.dev/mihf"
)

// ReceiverConfig describes a receiver.
type ReceiverConfig struct {
	SACK     bool
	Window   int           // segments; 0: no limit that matters
	AckDelay time.Duration // of the first of two segments; below 0: each is acknowledged at once; 0: 200 ms
}

// A Receiver is the receiving end of a connection; its application reads at once.
type Receiver struct {
	config  ReceiverConfig
	next    uint64
	edge    uint64    // behind the last segment that was ever asked for
	blocks  []Block   // beyond next, the newest first
	acked   uint64    // Next of the last acknowledgement
	echo    mihf.Time // TS.Recent of RFC 7323, 4.3
	waiting bool      // a segment is not acknowledged yet
	due     mihf.Time

	// Delivered counts segments that came in order; Duplicates those that came again.
	Delivered, Duplicates uint64
}

// NewReceiver returns a receiver that has nothing.
func NewReceiver(c ReceiverConfig) *Receiver {
	if c.Window == 0 {
		c.Window = defaultWindow
	}
	if c.AckDelay == 0 {
		c.AckDelay = defaultAckDelay
	}
	return &Receiver{config: c}
}

// OnSegment takes a segment and returns the acknowledgement that it asks for at once; false:
// none, it may come with the next one.
func (r *Receiver) OnSegment(now mihf.Time, g Segment) (Ack, bool) {
	if g.Seq <= r.acked {
		r.echo = max(r.echo, g.Sent)
	}
	switch {
	case g.Probe:
		return r.ack(), true
	case g.Seq < r.next || r.has(g.Seq):
		r.Duplicates++
		return r.duplicate(g.Seq), true
	case g.Seq >= max(r.edge, r.next+uint64(r.config.Window)):
		return r.ack(), true // no room: what is acknowledged says so
	case g.Seq > r.next:
		r.insert(g.Seq)
		return r.ack(), true
	}
	gap := len(r.blocks) > 0
	r.next++
	r.Delivered++
	r.join()
	if gap || r.config.AckDelay < 0 || r.waiting {
		return r.ack(), true
	}
	r.waiting, r.due = true, now.Add(r.config.AckDelay)
	return Ack{}, false
}

// SetWindow changes the room for segments and returns the acknowledgement that says so. What was
// asked for before is still taken: a smaller window stops what comes after it (RFC 9293, 3.8.6.2.1).
func (r *Receiver) SetWindow(segments int) Ack {
	r.config.Window = segments
	return r.ack()
}

// Next returns when a delayed acknowledgement is due; zero: none waits.
func (r *Receiver) Next() mihf.Time { return r.due }

// Advance returns the delayed acknowledgement if it is due.
func (r *Receiver) Advance(now mihf.Time) (Ack, bool) {
	if !r.due.Due(now) {
		return Ack{}, false
	}
	return r.ack(), true
}

func (r *Receiver) ack() Ack {
	r.waiting, r.due = false, 0
	r.acked, r.edge = r.next, max(r.edge, r.next+uint64(r.config.Window))
	a := Ack{Next: r.next, Window: r.config.Window, Echo: r.echo}
	if r.config.SACK {
		a.Used = copy(a.Blocks[:], r.blocks)
	}
	return a
}

// duplicate reports a segment that came again in the first block (RFC 2883).
func (r *Receiver) duplicate(seq uint64) Ack {
	a := r.ack()
	if r.config.SACK {
		blocks := a.Blocks
		a.Blocks[0] = Block{seq, seq + 1}
		a.Used = 1 + copy(a.Blocks[1:], blocks[:a.Used])
		a.DSACK = true
	}
	return a
}

func (r *Receiver) has(seq uint64) bool {
	for _, b := range r.blocks {
		if b.From <= seq && seq < b.To {
			return true
		}
	}
	return false
}

// insert adds a segment beyond a gap: its block, joined with the neighbours, becomes the first.
func (r *Receiver) insert(seq uint64) {
	n := Block{seq, seq + 1}
	kept := r.blocks[:0]
	for _, b := range r.blocks {
		switch {
		case b.To == n.From:
			n.From = b.From
		case b.From == n.To:
			n.To = b.To
		default:
			kept = append(kept, b)
		}
	}
	r.blocks = append(kept, Block{})
	copy(r.blocks[1:], r.blocks)
	r.blocks[0] = n
}

// join delivers the block that follows what has come in order.
func (r *Receiver) join() {
	for i, b := range r.blocks {
		if b.From == r.next {
			r.Delivered += b.To - b.From
			r.next = b.To
			r.blocks = append(r.blocks[:i], r.blocks[i+1:]...)
			return
		}
	}
}
