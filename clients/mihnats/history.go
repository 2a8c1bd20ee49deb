package mihnats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/natsproto"
)

// Past is an event that was kept.
type Past struct {
	At    time.Time // when the daemon published it, by the server's clock
	Event mihf.Event
}

// historyBatch is how many events are asked for at once.
const historyBatch = 512

// History returns the events that were published since a moment, oldest first, up to the
// present. It ends with an error that wraps mihf.ErrNotFound where no history is kept.
func (c *Client) History(ctx context.Context, since time.Time) iter.Seq2[Past, error] {
	return func(yield func(Past, error) bool) {
		r := pastReader{c: c, request: pastRequest{StartTime: &since, Batch: historyBatch, NextFor: ">"}}
		for more := true; more; {
			own, cancel := c.life.During(ctx)
			own, stop := c.limited(own)
			items, again, err := r.next(own)
			stop()
			cancel()
			for _, p := range items {
				if !yield(p, nil) {
					return
				}
			}
			if err != nil {
				yield(Past{}, err)
				return
			}
			more = again
		}
	}
}

// pastRequest is JetStream's request for messages of a stream, as it is written there.
type pastRequest struct {
	Sequence  uint64     `json:"seq,omitempty"`
	StartTime *time.Time `json:"start_time,omitempty"`
	NextFor   string     `json:"next_by_subj"`
	Batch     int        `json:"batch"`
}

// pastReader reads a stream batch by batch.
type pastReader struct {
	c       *Client
	request pastRequest
}

// Headers that JetStream adds to a message that was kept.
const (
	keptTime     = "Nats-Time-Stamp"
	keptSequence = "Nats-Sequence"
	statusHeader = "Status"
)

// next returns a batch; more: there may be another.
func (r *pastReader) next(ctx context.Context) (items []Past, more bool, err error) {
	if err := r.c.connected(ctx); err != nil {
		return nil, false, err
	}
	node, err := r.c.nodeFor(ctx)
	if err != nil {
		return nil, false, err
	}
	sub, err := r.c.conn().SubscribeSync(r.c.conn().NewInbox())
	if err != nil {
		return nil, false, r.c.errorOf(ctx, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // ends with its connection otherwise
	body, err := json.Marshal(r.request)
	if err != nil {
		return nil, false, fmt.Errorf("history: %w", err)
	}
	if err := r.c.conn().PublishRequest(natsproto.StreamRead(node), sub.Subject, body); err != nil {
		return nil, false, r.c.errorOf(ctx, err)
	}
	seen := 0
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if errors.Is(err, nats.ErrNoResponders) {
			return items, false, fmt.Errorf("%w: no history of %s is kept; see [nats] history in its configuration", mihf.ErrNotFound, node)
		}
		if err != nil {
			return items, false, r.c.errorOf(ctx, err)
		}
		if status := m.Header.Get(statusHeader); status != "" {
			return items, seen == historyBatch, statusError(status)
		}
		seen++
		if p, ok := r.take(m); ok {
			items = append(items, p)
		}
	}
}

// statusError says what a status of JetStream means; nil: the batch is complete, or there
// is nothing.
func statusError(status string) error {
	if status == "204" || status == "404" {
		return nil
	}
	return fmt.Errorf("history: JetStream answers with status %s", status)
}

// take reads one message that was kept.
func (r *pastReader) take(m *nats.Msg) (p Past, ok bool) {
	var err error
	if p.At, err = time.Parse(time.RFC3339Nano, m.Header.Get(keptTime)); err == nil {
		_, err = fmt.Sscan(m.Header.Get(keptSequence), &r.request.Sequence)
	}
	if err != nil {
		r.c.skipped.Add(1)
		return p, false
	}
	r.request.Sequence++
	r.request.StartTime = nil
	e, err := natsproto.ParseEnvelope(natsproto.Header(m.Header))
	var event mihv1.Event
	if err == nil {
		err = proto.Unmarshal(m.Data, &event)
	}
	if err == nil {
		held := e.Held + max(time.Since(p.At), 0)
		p.Event, err = conv.Decoder{Now: r.c.clock.Now(), Held: held}.Event(&event)
	}
	if err != nil {
		r.c.skipped.Add(1)
		return p, false
	}
	return p, true
}
