package mihgrpc

import (
	"context"
	"fmt"
	"sync"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
)

// maxWaiting bounds the hints that come while only an answer is waited for.
const maxWaiting = 1024

// attachStream is what an attachment needs of its stream.
type attachStream interface {
	Send(*mihv1.AttachRequest) error
	Recv() (*mihv1.AttachResponse, error)
}

// attachment is one Attach stream. There is no goroutine behind it: whoever waits, for
// hints or for an answer, and finds the stream unread, reads it for all.
type attachment struct {
	c       *Client
	stream  attachStream
	cancel  context.CancelFunc
	stop    func() bool
	sending sync.Mutex    // one Send at a time
	reading chan struct{} // full while somebody reads the stream
	more    chan struct{} // full when hints may wait

	mu      sync.Mutex // guards the following
	request uint64
	answers map[uint64]chan *mihv1.AttachResponse
	hints   []mihf.Delivery

	once sync.Once
	done chan struct{}
	err  error // set before done is closed
}

// Attach opens a transport's attachment, for as long as ctx and the connection live.
func (c *Client) Attach(ctx context.Context) (mihf.Attachment, error) {
	own, cancel := c.life.During(ctx)
	s, err := c.flows.Attach(own)
	if err == nil {
		err = taken(s)
	}
	if err != nil {
		cancel()
		return nil, c.errorOf(err)
	}
	return newAttachment(own, c, s, cancel), nil
}

func newAttachment(ctx context.Context, c *Client, s attachStream, cancel context.CancelFunc) *attachment {
	a := &attachment{
		c: c, stream: s, cancel: cancel, reading: make(chan struct{}, 1), more: make(chan struct{}, 1),
		answers: map[uint64]chan *mihv1.AttachResponse{}, done: make(chan struct{}),
	}
	a.stop = context.AfterFunc(ctx, func() { a.finish(context.Cause(ctx)) })
	return a
}

// Next waits for hints.
func (a *attachment) Next(buf []mihf.Delivery) (int, error) {
	if len(buf) == 0 {
		return 0, fmt.Errorf("%w: no room for a delivery", mihf.ErrInvalid)
	}
	for {
		if err := a.Err(); err != nil {
			return 0, err
		}
		if n := a.take(buf); n > 0 {
			return n, nil
		}
		select {
		case <-a.more:
		case <-a.done:
		case a.reading <- struct{}{}:
			n := a.take(buf) // what came before it was our turn
			if n == 0 && a.receive(&buf[0]) {
				n = 1
			}
			<-a.reading
			if n > 0 {
				return n, nil
			}
		}
	}
}

// take moves waiting hints into buf.
func (a *attachment) take(buf []mihf.Delivery) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := copy(buf, a.hints)
	if a.hints = a.hints[n:]; len(a.hints) == 0 {
		a.hints = nil
	}
	return n
}

// receive reads one message and reports whether it was a delivery; an answer goes to who
// waits for it.
func (a *attachment) receive(d *mihf.Delivery) bool {
	p, err := a.stream.Recv()
	if err != nil {
		a.finish(a.c.errorOf(err))
		return false
	}
	*d = mihf.Delivery{Previous: p.GetPrevious()}
	switch r := p.GetResponse().(type) {
	case *mihv1.AttachResponse_Hint:
		d.Kind = mihf.DeliverHint
		if d.Hint, err = a.c.decoder(conv.Held(p.GetHeld())).Hint(r.Hint); err != nil {
			a.c.skipped.Add(1)
			return false
		}
		return true
	case *mihv1.AttachResponse_Gap:
		d.Kind, d.Gap = mihf.DeliverGap, conv.DecodeGap(r.Gap)
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if answer := a.answers[p.GetRequestId()]; answer != nil {
		delete(a.answers, p.GetRequestId())
		answer <- p // has room for it
	} else {
		a.c.refused.Add(1)
	}
	return false
}

// queue keeps a delivery that came while an answer was waited for.
func (a *attachment) queue(d *mihf.Delivery) {
	a.mu.Lock()
	full := len(a.hints) >= maxWaiting
	if !full {
		a.hints = append(a.hints, *d)
	}
	a.mu.Unlock()
	if full {
		a.finish(fmt.Errorf("%w: %d hints waited", mihf.ErrSlow, maxWaiting))
		return
	}
	select {
	case a.more <- struct{}{}:
	default:
	}
}

// call sends a request and waits for its answer.
func (a *attachment) call(req *mihv1.AttachRequest) (*mihv1.AttachResponse, error) {
	answer := make(chan *mihv1.AttachResponse, 1)
	if err := a.send(req, answer); err != nil {
		return nil, err
	}
	for {
		select {
		case p := <-answer:
			if f := p.GetFailed(); f != nil {
				return nil, failedError(f)
			}
			return p, nil
		case <-a.done:
			return nil, a.err
		case a.reading <- struct{}{}:
			var d mihf.Delivery
			if len(answer) == 0 && a.receive(&d) {
				a.queue(&d)
			}
			<-a.reading
		}
	}
}

// send sends a request; answer, if not nil, gets what comes back.
func (a *attachment) send(req *mihv1.AttachRequest, answer chan *mihv1.AttachResponse) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	if err := a.Err(); err != nil {
		return err
	}
	a.mu.Lock()
	a.request++
	req.RequestId = a.request
	if answer != nil {
		a.answers[a.request] = answer
	}
	a.mu.Unlock()
	if err := a.stream.Send(req); err != nil {
		return a.broken()
	}
	return nil
}

// broken returns why the stream cannot be written to: that is only found by reading.
func (a *attachment) broken() error {
	for {
		select {
		case <-a.done:
			return a.err
		case a.reading <- struct{}{}:
			var d mihf.Delivery
			if a.Err() == nil && a.receive(&d) {
				a.queue(&d)
			}
			<-a.reading
		}
	}
}

// Register registers a flow.
func (a *attachment) Register(spec mihf.FlowSpec) (mihf.Registration, error) {
	p, err := a.call(&mihv1.AttachRequest{Request: &mihv1.AttachRequest_Register{Register: conv.EncodeFlowSpec(&spec)}})
	if err != nil {
		return mihf.Registration{}, err
	}
	return conv.DecodeRegistration(p.GetRegistered())
}

// Update tells a flow's newer state.
func (a *attachment) Update(u mihf.FlowUpdate) error {
	_, err := a.call(&mihv1.AttachRequest{Request: &mihv1.AttachRequest_Update{Update: conv.EncodeFlowUpdate(&u)}})
	return err
}

// Unregister ends a flow's registration.
func (a *attachment) Unregister(id mihf.FlowID) error {
	_, err := a.call(&mihv1.AttachRequest{Request: &mihv1.AttachRequest_Unregister{Unregister: &mihv1.Unregister{Flow: string(id)}}})
	return err
}

// Acknowledge sends an acknowledgement and does not wait.
func (a *attachment) Acknowledge(k mihf.Ack) error {
	return a.send(&mihv1.AttachRequest{Request: &mihv1.AttachRequest_Ack{Ack: conv.EncodeAck(&k)}}, nil)
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
func (a *attachment) Close() {
	a.finish(mihf.ErrClosed)
	a.stop()
}

// finish ends the attachment for the first reason given.
func (a *attachment) finish(why error) {
	a.once.Do(func() {
		a.err = why
		close(a.done)
	})
	a.cancel()
}
