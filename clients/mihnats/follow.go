package mihnats

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"mihf.dev/clients"
	"mihf.dev/clients/broadcast"
	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/natsproto"
)

// Sizes of a subscription.
const (
	maxHeard    = 2048 // messages that wait for the reader
	maxLive     = 16   // of them read
	maxCatchUp  = 1 << 15
	maxCatchUpB = 128 << 20
	maxSilence  = 3 * natsproto.AliveEvery
)

// Follow subscribes and keeps the subscription. See [clients.Follow].
func (c *Client) Follow(ctx context.Context, req mihf.SubscribeRequest) (mihf.Feed, error) {
	return c.life.Follow(ctx, req, c.subscribe)
}

// subscribe listens, then catches up.
func (c *Client) subscribe(ctx context.Context, req mihf.SubscribeRequest) (clients.Stream, error) {
	opening, stop := c.limited(ctx)
	defer stop()
	if err := c.connected(opening); err != nil {
		return nil, err
	}
	node, err := c.nodeFor(opening)
	if err != nil {
		return nil, err
	}
	if req.Present {
		past, err := c.catchUp(opening, node, &req)
		if err != nil {
			return nil, err
		}
		return broadcast.New(broadcast.Options{Request: req, CaughtUp: past.items, Boot: past.boot, Reached: past.reached}), nil
	}
	subjects, err := c.subjects(opening, node, &req)
	if err != nil {
		return nil, err
	}
	h := newHearing(c)
	if err := h.listen(subjects); err != nil {
		h.close()
		return nil, c.errorOf(opening, err)
	}
	past, err := c.catchUp(opening, node, &req)
	if err != nil {
		h.close()
		return nil, err
	}
	go h.read(ctx)
	return broadcast.New(broadcast.Options{
		Request: req, CaughtUp: past.items, Boot: past.boot, Reached: past.reached,
		Live: h.live, Lost: h.lost, Why: h.reason, Close: h.close,
	}), nil
}

// subjects returns what to listen to. Where hints are wanted the daemon says which are to
// be heard.
func (c *Client) subjects(ctx context.Context, node mihf.NodeID, req *mihf.SubscribeRequest) ([]string, error) {
	subjects := []string{natsproto.Sync(node)}
	switch {
	case req.HintsOnly:
	case len(req.Links) == 0:
		subjects = append(subjects, natsproto.Events(node))
	default:
		subjects = append(subjects, natsproto.LinkEvents(node, ""))
		for _, l := range req.Links {
			subjects = append(subjects, natsproto.LinkEvents(node, l))
		}
	}
	if !req.WantsHints() {
		return subjects, nil
	}
	h, err := c.call(ctx, ask{op: natsproto.OpResume}, nil)
	if err != nil {
		return nil, err
	}
	if hints := h[natsproto.HeaderHints]; len(hints) == 1 {
		return append(subjects, hints[0]), nil
	}
	return subjects, nil // the catch-up is refused, and says why
}

// past is what was caught up with.
type past struct {
	items   []mihf.Delivery
	boot    mihf.BootID
	reached uint64
	passed  clients.PassedOver
}

// add takes one. What is of no kind that we know is passed over, and what follows it
// follows what was before it.
func (p *past) add(d *mihf.Delivery) {
	if !known(d) {
		p.passed.Add(d.Previous)
		return
	}
	p.passed.Join(d)
	p.items = append(p.items, *d)
}

// catchUp asks for what was published already.
func (c *Client) catchUp(ctx context.Context, node mihf.NodeID, req *mihf.SubscribeRequest) (p past, err error) {
	sub, err := c.conn().SubscribeSync(c.conn().NewInbox())
	if err != nil {
		return p, c.errorOf(ctx, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // ends with its connection otherwise
	if err := sub.SetPendingLimits(maxCatchUp, maxCatchUpB); err != nil {
		return p, c.errorOf(ctx, err)
	}
	m, err := c.message(node, &ask{op: natsproto.OpResume, deliver: sub.Subject, body: conv.EncodeSubscribe(req)})
	if err != nil {
		return p, err
	}
	m.Reply = sub.Subject
	if err := c.conn().PublishMsg(m); err != nil {
		return p, c.errorOf(ctx, err)
	}
	var parts parts
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return p, c.errorOf(ctx, err)
		}
		ended, err := c.past(&p, &parts, m)
		if ended || err != nil {
			return p, err
		}
	}
}

// past takes one message of a catch-up.
func (c *Client) past(p *past, parts *parts, m *nats.Msg) (ended bool, err error) {
	h := natsproto.Header(m.Header)
	if len(h[natsproto.HeaderType]) == 0 { // the answer; what matters of a good one is told
		c.heard(h)
		return false, natsproto.Refused(h, m.Data)
	}
	e, err := natsproto.ParseEnvelope(h)
	if err != nil {
		return false, err
	}
	if e.Type == natsproto.TypeEnd {
		p.boot, p.reached = e.Boot, e.Sequence
		return true, nil
	}
	data, whole, err := parts.add(&e, m.Data)
	if err != nil || !whole {
		return false, err
	}
	d, err := c.decode(&e, data)
	if err != nil {
		c.skipped.Add(1)
		return false, nil //nolint:nilerr // counted; who follows sees by Previous that it is missing
	}
	p.add(&d)
	return false, nil
}

// decode reads a delivery whose type is said. An event or hint of a kind that is not known
// is counted and has none; its place in the order is known all the same.
func (c *Client) decode(e *natsproto.Envelope, data []byte) (d mihf.Delivery, err error) {
	d = mihf.Delivery{Previous: e.Previous, Conflated: e.Conflated}
	dec := c.decoder(e)
	switch e.Type {
	case natsproto.TypeEvent:
		var p mihv1.Event
		d.Kind = mihf.DeliverEvent
		if err = proto.Unmarshal(data, &p); err == nil && p.GetKind() == nil { // what a newer broker added
			c.skipped.Add(1)
			d.Event.Sequence, d.Event.Link = p.GetSequence(), mihf.LinkID(p.GetLink())
			d.Event.Boot, err = mihf.ParseBootID(p.GetBootId())
		} else if err == nil {
			d.Event, err = dec.Event(&p)
		}
	case natsproto.TypeHint:
		var p mihv1.Hint
		d.Kind = mihf.DeliverHint
		if err = proto.Unmarshal(data, &p); err == nil && p.GetKind() == nil {
			c.skipped.Add(1)
			d.Hint.Sequence, d.Hint.Flow, d.Hint.Link = p.GetSequence(), mihf.FlowID(p.GetFlow()), mihf.LinkID(p.GetLink())
			d.Hint.Boot, err = mihf.ParseBootID(p.GetBootId())
		} else if err == nil {
			d.Hint, err = dec.Hint(&p)
		}
	case natsproto.TypeSnapshot:
		var p mihv1.Snapshot
		if err = proto.Unmarshal(data, &p); err == nil {
			d.Kind = mihf.DeliverSnapshot
			d.Snapshot, err = dec.Snapshot(&p)
		}
	case natsproto.TypeGap:
		var p mihv1.Gap
		if err = proto.Unmarshal(data, &p); err == nil {
			d.Kind, d.Gap = mihf.DeliverGap, conv.DecodeGap(&p)
		}
	default:
		err = fmt.Errorf("%w: type %.40q", mihf.ErrInvalid, e.Type)
	}
	return d, err
}

// longSnapshot returns a snapshot that needs more than one message.
func (c *Client) longSnapshot(ctx context.Context) (*mihf.Snapshot, error) {
	own, stop := c.limited(ctx)
	defer stop()
	node, err := c.nodeFor(own)
	if err != nil {
		return nil, err
	}
	p, err := c.catchUp(own, node, &mihf.SubscribeRequest{Present: true})
	if err != nil {
		return nil, err
	}
	for i := range p.items {
		if p.items[i].Kind == mihf.DeliverSnapshot {
			return p.items[i].Snapshot, nil
		}
	}
	return nil, errors.New("the daemon gave no snapshot")
}

// parts puts a payload together.
type parts struct {
	data []byte
	next int
}

// add takes one part; whole: the payload is complete.
func (p *parts) add(e *natsproto.Envelope, data []byte) (payload []byte, whole bool, err error) {
	if e.Part.Of <= 1 {
		return data, true, nil
	}
	if e.Part.N != p.next+1 || len(p.data)+len(data) > maxCatchUpB {
		return nil, false, fmt.Errorf("%w: part %d of %d does not follow part %d", mihf.ErrSlow, e.Part.N, e.Part.Of, p.next)
	}
	p.data, p.next = append(p.data, data...), e.Part.N
	if e.Part.N < e.Part.Of {
		return nil, false, nil
	}
	payload, *p = p.data, parts{}
	return payload, true, nil
}

// hearing is the live part of a subscription. All its subjects come through one channel,
// so that they keep the order in which they came.
type hearing struct {
	c     *Client
	l     listener
	heard chan *nats.Msg
	live  chan broadcast.Live
	lost  chan struct{}
	done  chan struct{}
	close func()

	once sync.Once
	why  error // set before lost is closed
}

func newHearing(c *Client) *hearing {
	h := &hearing{
		c: c, heard: make(chan *nats.Msg, maxHeard), live: make(chan broadcast.Live, maxLive),
		lost: make(chan struct{}), done: make(chan struct{}),
	}
	h.l.cut = h.cut
	h.close = sync.OnceFunc(func() {
		close(h.done)
		c.forget(&h.l)
	})
	return h
}

func (h *hearing) cut(why error) {
	h.once.Do(func() {
		h.why = why
		close(h.lost)
	})
}

// reason says why lost is closed.
func (h *hearing) reason() error { return h.why }

func (h *hearing) listen(subjects []string) error {
	for _, subject := range subjects {
		sub, err := h.c.conn().ChanSubscribe(subject, h.heard)
		if err != nil {
			return err
		}
		h.l.subs = append(h.l.subs, sub)
	}
	h.c.listen(&h.l)
	return nil
}

// read turns messages into deliveries until the hearing is closed, or ctx ends.
func (h *hearing) read(ctx context.Context) {
	defer h.close()
	silence := time.NewTimer(maxSilence)
	defer silence.Stop()
	for {
		select {
		case <-h.done:
			return
		case <-ctx.Done():
			h.cut(context.Cause(ctx))
			return
		case <-silence.C:
			h.cut(fmt.Errorf("%w: the daemon has not been heard of for %v", mihf.ErrClosed, maxSilence))
		case m := <-h.heard:
			silence.Reset(maxSilence)
			if !h.take(ctx, m) {
				return
			}
		}
	}
}

// take reads one message; false: the hearing is over.
func (h *hearing) take(ctx context.Context, m *nats.Msg) bool {
	s, err := natsproto.ParseSubject(m.Subject)
	var e natsproto.Envelope
	if err == nil {
		e, err = natsproto.ParseEnvelope(natsproto.Header(m.Header))
	}
	if err != nil {
		h.c.skipped.Add(1)
		return true
	}
	switch s.Class {
	case natsproto.ClassSync:
		h.c.way.late(h.c.clock.Now(), e.At)
		switch e.Type {
		case natsproto.TypeHole:
			h.cut(broadcast.ErrLost)
		case natsproto.TypeEnd:
			h.cut(fmt.Errorf("%w: the daemon ended", mihf.ErrClosed))
		default: // it is there
		}
		return true
	case natsproto.ClassEvent:
		e.Type = natsproto.TypeEvent
	default:
		e.Type = natsproto.TypeHint
	}
	d, err := h.c.decode(&e, m.Data)
	if err != nil {
		h.c.skipped.Add(1)
		return true
	}
	select {
	case h.live <- broadcast.Live{Delivery: d, Chain: e.Previous}:
		return true
	case <-h.done:
	case <-ctx.Done():
		h.cut(context.Cause(ctx))
	}
	return false
}
