package mihdbus

import (
	"context"
	"fmt"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	"mihf.dev/proto/dbusapi"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/variant"
)

// attachment is a connection to the bus with the flows that were registered on it.
type attachment struct {
	c    *Client
	l    *link
	ctx  context.Context
	in   *inbox
	stop func()
}

// Attach opens a transport's attachment, for as long as ctx, the bus and the broker live.
func (c *Client) Attach(ctx context.Context) (mihf.Attachment, error) {
	own, cancel := c.life.During(ctx)
	l, err := c.connect(own)
	if err != nil {
		err = c.errorOf(own, err)
		cancel()
		return nil, err
	}
	a := &attachment{c: c, l: l, ctx: own, in: newInbox(c.o.Queue)}
	l.mu.Lock()
	l.at = a
	ended := l.ended
	l.mu.Unlock()
	if ended != nil { // meanwhile
		a.in.end(ended)
	}
	stop := context.AfterFunc(own, func() { a.finish(context.Cause(own)) })
	a.stop = func() { stop(); cancel() }
	return a, nil
}

// signal takes what the broker says to this connection; by the goroutine that reads the bus.
func (a *attachment) signal(s *dbus.Signal) {
	switch s.Name {
	case dbusapi.BrokerInterface + "." + dbusapi.SignalDetached:
		var name, text string
		if dbus.Store(s.Body, &name, &text) == nil {
			a.in.end(dbusapi.NewError(name, text))
		}
	case dbusapi.BrokerInterface + "." + dbusapi.SignalGap:
		r := received{at: a.c.o.Clock.Now(), gap: true}
		if dbus.Store(s.Body, &r.dict) == nil {
			a.in.put(r)
		}
	default:
		if _, ok := dbusapi.ParseFlowPath(s.Path); !ok || !isHint[s.Name] {
			return
		}
		r := received{at: a.c.o.Clock.Now()}
		r.previous, _ = arg[uint64](s, 0)
		r.heldNs, _ = arg[int64](s, 1)
		var ok bool
		if r.dict, ok = arg[variant.Dict](s, 2); ok {
			a.in.put(r)
		}
	}
}

// isHint has the names of the signals of hints.
var isHint = func() map[string]bool {
	names := map[string]bool{}
	for k := mihf.HintFreeze; mihf.AllHints.Has(k); k++ {
		names[dbusapi.FlowInterface+"."+dbusapi.HintSignal(k)] = true
	}
	return names
}()

// Next waits for hints.
func (a *attachment) Next(buf []mihf.Delivery) (int, error) {
	if len(buf) == 0 {
		return 0, fmt.Errorf("%w: no room for a delivery", mihf.ErrInvalid)
	}
	for {
		r, err := a.in.get()
		if err != nil {
			a.l.close() // a connection whose hints nobody gets registers nothing
			return 0, err
		}
		if err := r.delivery(&buf[0]); err != nil {
			a.c.skipped.Add(1)
			continue
		}
		return 1, nil
	}
}

// delivery reads a hint or gap.
func (r *received) delivery(d *mihf.Delivery) (err error) {
	if r.gap {
		var p mihv1.Gap
		err = variant.Decode(r.dict, &p)
		*d = mihf.Delivery{Kind: mihf.DeliverGap, Gap: conv.DecodeGap(&p)}
		return err
	}
	var p mihv1.Hint
	if err = variant.Decode(r.dict, &p); err != nil {
		return err
	}
	*d = mihf.Delivery{Kind: mihf.DeliverHint, Previous: r.previous}
	d.Hint, err = conv.Decoder{Now: r.at, Held: heldOf(r.heldNs)}.Hint(&p)
	return err
}

// ask calls a method on the attachment's own connection.
func (a *attachment) ask(method string, args ...any) ([]any, error) {
	if err := a.Err(); err != nil {
		return nil, err
	}
	body, err := a.l.call(a.ctx, method, args...)
	if err != nil {
		if why := a.in.why(); why != nil {
			return nil, why
		}
	}
	return body, a.c.errorOf(a.ctx, err)
}

// Register registers a flow.
func (a *attachment) Register(spec mihf.FlowSpec) (mihf.Registration, error) {
	body, err := a.ask(dbusapi.MethodRegisterFlow, variant.Encode(conv.EncodeFlowSpec(&spec)))
	if err != nil {
		return mihf.Registration{}, err
	}
	var p mihv1.Registration
	if err := read(body, &p); err != nil {
		return mihf.Registration{}, err
	}
	return conv.DecodeRegistration(&p)
}

// Update tells a flow's newer state.
func (a *attachment) Update(u mihf.FlowUpdate) error {
	_, err := a.ask(dbusapi.MethodUpdateFlow, variant.Encode(conv.EncodeFlowUpdate(&u)))
	return err
}

// Unregister ends a flow's registration.
func (a *attachment) Unregister(id mihf.FlowID) error {
	_, err := a.ask(dbusapi.MethodUnregisterFlow, string(id))
	return err
}

// Acknowledge sends an acknowledgement and does not wait.
func (a *attachment) Acknowledge(k mihf.Ack) error {
	if err := a.Err(); err != nil {
		return err
	}
	if err := a.l.tell(dbusapi.MethodAcknowledge, variant.Encode(conv.EncodeAck(&k))); err != nil {
		return a.c.errorOf(a.ctx, err)
	}
	return nil
}

// Done is closed when the attachment has ended.
func (a *attachment) Done() <-chan struct{} { return a.in.done }

// Err says why it ended.
func (a *attachment) Err() error { return a.in.why() }

// Close ends the attachment and with it the registration of its flows.
func (a *attachment) Close() {
	a.finish(mihf.ErrClosed)
	a.stop()
}

// finish ends the attachment by its user, and its connection.
func (a *attachment) finish(why error) {
	a.in.close(why)
	a.l.fail(why)
}
