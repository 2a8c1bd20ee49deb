package mihnats

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/natsproto"
)

// maxHints bounds the hints that wait for their reader.
const maxHints = 1024

// attachment is one session with its inbox.
type attachment struct {
	c       *Client
	ctx     context.Context
	session string
	node    mihf.NodeID
	l       listener
	heard   chan *nats.Msg
	stop    func() bool
	last    uint64 // sequence of the newest hint; the reader's

	once sync.Once
	done chan struct{}
	err  error // set before done is closed
}

// Attach opens a transport's attachment, for as long as ctx, the connection and the
// daemon's knowledge of it live.
func (c *Client) Attach(ctx context.Context) (mihf.Attachment, error) {
	opening, stop := c.limited(ctx)
	defer stop()
	if err := c.connected(opening); err != nil {
		return nil, err
	}
	node, err := c.nodeFor(opening)
	if err != nil {
		return nil, err
	}
	a := &attachment{c: c, session: rand.Text(), node: node, heard: make(chan *nats.Msg, maxHints), done: make(chan struct{})}
	a.l.cut = a.finish
	sub, err := c.conn().ChanSubscribe(c.conn().NewInbox(), a.heard)
	if err != nil {
		return nil, c.errorOf(opening, err)
	}
	a.l.subs = []*nats.Subscription{sub}
	c.listen(&a.l)
	if _, err := c.call(opening, ask{op: natsproto.OpHeartbeat, session: a.session, deliver: sub.Subject}, nil); err != nil {
		c.forget(&a.l)
		return nil, err
	}
	own, cancel := c.life.During(ctx)
	a.ctx = own
	a.stop = context.AfterFunc(own, func() { a.finish(context.Cause(own)) })
	go func() {
		defer cancel()
		a.live()
	}()
	return a, nil
}

// live keeps the session until the attachment ends, and then lets it go.
func (a *attachment) live() {
	if err := a.c.keep(a.ctx, a.session, a.done); err != nil {
		a.finish(err)
	}
	<-a.done
	a.stop()
	a.c.forget(&a.l)
	a.c.letGo(a.node, a.session)
}

// letGo tells the daemon that a session is over. If that is lost the session lapses.
func (c *Client) letGo(node mihf.NodeID, session string) {
	if m, err := c.message(node, &ask{op: natsproto.OpUnregister, session: session}); err == nil && c.conn().IsConnected() {
		_ = c.conn().PublishMsg(m)
	}
}

// keep says that a session is there, again and again, until done is closed (nil), the daemon
// does not know the session, or it has not been heard of for too long.
func (c *Client) keep(ctx context.Context, session string, done <-chan struct{}) error {
	every := natsproto.HeartbeatEvery
	timer := time.NewTimer(every)
	defer timer.Stop()
	heard := time.Now()
	for {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		own, cancel := context.WithTimeout(ctx, every)
		_, err := c.call(own, ask{op: natsproto.OpHeartbeat, session: session}, nil)
		cancel()
		switch {
		case err == nil:
			heard = time.Now()
			timer.Reset(every)
			continue
		case errors.Is(err, mihf.ErrNotFound):
			return fmt.Errorf("%w: the daemon does not know the session any more", mihf.ErrClosed)
		case time.Since(heard) > natsproto.Lifetime-every:
			return fmt.Errorf("%w: the daemon does not answer: %w", mihf.ErrClosed, err)
		}
		timer.Reset(every / 5)
	}
}

// Next waits for hints.
func (a *attachment) Next(buf []mihf.Delivery) (int, error) {
	if len(buf) == 0 {
		return 0, fmt.Errorf("%w: no room for a delivery", mihf.ErrInvalid)
	}
	n := 0
	for n < len(buf) {
		if n == 0 {
			if err := a.Err(); err != nil {
				return 0, err
			}
			select {
			case m := <-a.heard:
				n += a.take(m, &buf[n])
			case <-a.done:
			}
			continue
		}
		select {
		case m := <-a.heard:
			n += a.take(m, &buf[n])
			continue
		default:
		}
		break
	}
	return n, nil
}

// take reads one message and returns how many deliveries it was.
func (a *attachment) take(m *nats.Msg, d *mihf.Delivery) int {
	h := natsproto.Header(m.Header)
	e, err := natsproto.ParseEnvelope(h)
	if err != nil {
		a.c.skipped.Add(1)
		return 0
	}
	switch e.Type {
	case natsproto.TypeFailed:
		a.c.refused.Add(1)
		return 0
	case natsproto.TypeEnd:
		if err = natsproto.Refused(h, m.Data); err == nil {
			err = mihf.ErrClosed
		}
		a.finish(err)
		return 0
	default:
	}
	if *d, err = a.c.decode(&e, m.Data); err != nil {
		a.c.skipped.Add(1)
		return 0
	}
	if d.Kind == mihf.DeliverHint && d.Previous != a.last {
		a.finish(fmt.Errorf("%w: a hint was lost on the way", mihf.ErrSlow))
		return 0
	}
	a.last = d.Sequence()
	if !known(d) {
		return 0
	}
	return 1
}

// known reports whether a delivery is of a kind that we know.
func known(d *mihf.Delivery) bool {
	switch d.Kind {
	case mihf.DeliverHint:
		return d.Hint.Kind != 0
	case mihf.DeliverEvent:
		return d.Event.Kind != 0
	default:
		return true
	}
}

func (a *attachment) call(op string, body, answer proto.Message) error {
	if err := a.Err(); err != nil {
		return err
	}
	_, err := a.c.call(a.ctx, ask{op: op, session: a.session, body: body}, answer)
	if ended := a.Err(); err != nil && ended != nil {
		return ended
	}
	return err
}

// Register registers a flow.
func (a *attachment) Register(spec mihf.FlowSpec) (mihf.Registration, error) {
	var p mihv1.Registration
	if err := a.call(natsproto.OpRegister, conv.EncodeFlowSpec(&spec), &p); err != nil {
		return mihf.Registration{}, err
	}
	return conv.DecodeRegistration(&p)
}

// Update tells a flow's newer state.
func (a *attachment) Update(u mihf.FlowUpdate) error {
	return a.call(natsproto.OpUpdate, conv.EncodeFlowUpdate(&u), nil)
}

// Unregister ends a flow's registration.
func (a *attachment) Unregister(id mihf.FlowID) error {
	if id == "" {
		return fmt.Errorf("%w: no flow is named", mihf.ErrInvalid) // that would end the session
	}
	return a.call(natsproto.OpUnregister, &mihv1.Unregister{Flow: string(id)}, nil)
}

// Acknowledge sends an acknowledgement and does not wait.
func (a *attachment) Acknowledge(k mihf.Ack) error {
	if err := a.Err(); err != nil {
		return err
	}
	m, err := a.c.message(a.node, &ask{op: natsproto.OpAck, session: a.session, body: conv.EncodeAck(&k)})
	if err != nil {
		return err
	}
	return a.c.errorOf(a.ctx, a.c.conn().PublishMsg(m))
}

// Done is closed when the attachment has ended.
func (a *attachment) Done() <-chan struct{} { return a.done }

// Err says why it ended.
func (a *attachment) Err() error {
	select {
	case <-a.done:
		return a.err
	default:
		return nil
	}
}

// Close ends the attachment and with it the registration of its flows.
func (a *attachment) Close() { a.finish(mihf.ErrClosed) }

// finish ends the attachment for the first reason given.
func (a *attachment) finish(why error) {
	a.once.Do(func() {
		a.err = why
		close(a.done)
	})
}
