// Package broadcast reads everything that a broker publishes, for fronts that send each
// message once to whoever listens (NATS, D-Bus).
//
// # Guarantees
//
//   - Messages come in the broker's order, each once. Each names the one before it on its
//     link (events) or of its flow (hints), see [Chains].
//   - What was missed breaks all chains: the next message on each names a sequence that
//     nobody has seen who has not read the state again.
//   - [CatchUp] and the messages that were heard since before it was called are together
//     complete, for every link and flow.
//
// # Limits
//
// A reader whose Send is slow is closed by the broker as any other, and resumes. At most
// [maxChains] links and flows are told apart; with more, all chains break now and then.
//
// Shell: [Run] reads in the goroutine that calls it.
package broadcast

import (
	"context"
	"errors"
	"fmt"
	"io"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front"
)

// Message is one delivery to all: an event or a hint, and what is before the first of
// them and after a loss: a snapshot or a gap.
type Message struct {
	*mihf.Delivery        // good until Send returns
	Chain          uint64 // sequence of the message before it on its chain
}

// batch is how many deliveries are taken from the broker at once.
const batch = 64

// Run subscribes to all events and hints and calls send for each, until ctx ends (nil) or
// the broker does (mihf.ErrClosed). The caller must see everything. A subscription that was
// closed as slow is resumed.
func Run(ctx context.Context, b front.Broker, who mihf.Caller, send func(Message)) error {
	r := reader{send: send}
	for ctx.Err() == nil {
		if err := r.read(ctx, b, who); ctx.Err() == nil && !errors.Is(err, mihf.ErrSlow) {
			return fmt.Errorf("reading what the broker publishes: %w", err)
		}
	}
	return nil
}

type reader struct {
	send   func(Message)
	chains Chains
	buf    [batch]mihf.Delivery
	boot   mihf.BootID
	last   uint64
}

// read is one subscription.
func (r *reader) read(ctx context.Context, b front.Broker, who mihf.Caller) error {
	feed, err := b.Subscribe(ctx, who, mihf.SubscribeRequest{Hints: true, After: r.last, Boot: r.boot})
	if err != nil {
		return err
	}
	defer feed.Close()
	for {
		n, err := feed.Next(r.buf[:])
		if err != nil {
			return err
		}
		for i := range r.buf[:n] {
			d := &r.buf[i]
			r.note(d)
			r.send(Message{Delivery: d, Chain: r.chains.Next(d)})
		}
		clear(r.buf[:n]) // a snapshot may be large
	}
}

// note remembers how far the reader is.
func (r *reader) note(d *mihf.Delivery) {
	r.last = d.Sequence()
	switch d.Kind {
	case mihf.DeliverEvent:
		r.boot = d.Event.Boot
	case mihf.DeliverHint:
		r.boot = d.Hint.Boot
	case mihf.DeliverSnapshot:
		r.boot = d.Snapshot.Boot
	case mihf.DeliverGap: // of the same run
	}
}

// Reached is where a catch-up ends: everything of the run up to the sequence was told.
type Reached struct {
	Boot     mihf.BootID
	Sequence uint64
}

// CatchUp calls each with what a subscription gives that begins now and was published
// already: a snapshot, or what the caller missed since req.After. It ends with the error of
// each, if there is one.
func CatchUp(ctx context.Context, b front.Broker, who mihf.Caller, req mihf.SubscribeRequest, each func(*mihf.Delivery) error) (Reached, error) {
	status, err := b.Status(ctx, who)
	if err != nil {
		return Reached{}, err
	}
	reached := Reached{Boot: status.Boot, Sequence: status.Sequence}
	req.Present = true
	feed, err := b.Subscribe(ctx, who, req)
	if err != nil {
		return Reached{}, err
	}
	defer feed.Close()
	buf := make([]mihf.Delivery, batch)
	for {
		n, err := feed.Next(buf)
		if errors.Is(err, io.EOF) {
			return reached, nil
		}
		if err != nil {
			return reached, err
		}
		for i := range buf[:n] {
			reached.Sequence = max(reached.Sequence, buf[i].Sequence())
			if err := each(&buf[i]); err != nil {
				return reached, err
			}
		}
	}
}
