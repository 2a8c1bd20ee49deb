package dbusfront

import (
	"errors"
	"fmt"
	"sync"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	"mihf.dev/proto/dbusapi"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/variant"
)

// attached is a peer's attachment to the broker: the flows that it registered.
type attached struct {
	p     *peer
	at    mihf.Attachment
	ended chan struct{} // closed when nothing more comes

	// sending is held while a hint is written, and from a registration to its answer.
	sending sync.Mutex
}

// attach returns the peer's attachment; the first registration makes it.
func (p *peer) attach(who mihf.Caller) (*attached, error) {
	p.mu.Lock()
	a := p.attached
	p.mu.Unlock()
	if a != nil && a.at.Err() == nil {
		return a, nil
	}
	at, err := p.b.s.o.Broker.Attach(p.ctx, who) // not under the lock: it waits for the broker
	if err != nil {
		return nil, err
	}
	a = &attached{p: p, at: at, ended: make(chan struct{})}
	p.mu.Lock()
	p.attached = a
	p.mu.Unlock()
	p.b.spawn(a.hints)
	return a, nil
}

// present returns the attachment for a request about a flow.
func (p *peer) present(id mihf.FlowID) (mihf.Attachment, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.attached == nil {
		return nil, fmt.Errorf("%w: flow %s: this connection has registered none", mihf.ErrNotFound, id)
	}
	return p.attached.at, nil
}

// hints sends what the attachment gives until it ends, and says why it did.
func (a *attached) hints() {
	defer close(a.ended)
	defer a.at.Close()
	err := a.deliverAll()
	a.p.mu.Lock()
	if a.p.attached == a {
		a.p.attached = nil
	}
	a.p.mu.Unlock()
	a.p.b.registrants.drop(a)
	a.p.b.touch()
	if a.p.ctx.Err() == nil {
		_ = a.p.b.emit(a.p.ctx, a.p.name, dbusapi.Root, dbusapi.BrokerInterface, dbusapi.SignalDetached, these(dbusapi.ErrorName(err), err.Error())) // the bus was lost: that ends it too
	}
}

func (a *attached) deliverAll() error {
	buf := make([]mihf.Delivery, 16)
	for {
		n, err := a.at.Next(buf)
		if err != nil {
			return err
		}
		for i := range buf[:n] {
			if err := a.deliver(&buf[i]); err != nil {
				return err
			}
		}
		a.p.b.touch()
	}
}

func (a *attached) deliver(d *mihf.Delivery) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	s := a.p.b.s
	switch d.Kind {
	case mihf.DeliverHint:
		h := &d.Hint
		return a.p.b.emitFirst(a.p.ctx, a.p.name, dbusapi.FlowPath(h.Flow), dbusapi.FlowInterface, dbusapi.HintSignal(h.Kind),
			func() []any { return []any{d.Previous, int64(0), s.hint(h)} })
	case mihf.DeliverGap:
		return a.p.b.emit(a.p.ctx, a.p.name, dbusapi.Root, dbusapi.BrokerInterface, dbusapi.SignalGap, these(variant.Encode(conv.EncodeGap(&d.Gap))))
	default:
		return nil // an attachment has nothing else
	}
}

func (p *peer) registerFlow(who mihf.Caller, args []any) (answer, error) {
	var req mihv1.FlowSpec
	if err := variant.DecodeRequest(dictOf(args[0]), &req); err != nil {
		return answer{}, err
	}
	spec, err := conv.DecodeFlowSpec(&req)
	if err != nil {
		return answer{}, err
	}
	a, err := p.attach(who)
	if err != nil {
		return answer{}, err
	}
	a.sending.Lock() // no hint goes out before the answer
	registered := false
	defer func() {
		if !registered { // refused, or a panic
			a.sending.Unlock()
		}
	}()
	reg, err := a.at.Register(spec)
	if err != nil {
		return answer{}, err
	}
	p.b.registrants.set(reg.Flow, a)
	p.b.touch()
	out := answer{args: []any{variant.Encode(conv.EncodeRegistration(&reg))}, after: a.sending.Unlock}
	registered = true
	return out, nil
}

func (p *peer) unregisterFlow(_ mihf.Caller, args []any) (answer, error) {
	id, err := conv.DecodeUnregister(&mihv1.Unregister{Flow: args[0].(string)})
	if err != nil {
		return answer{}, err
	}
	at, err := p.present(id)
	if err != nil {
		return answer{}, err
	}
	if err := at.Unregister(id); err != nil {
		return answer{}, ofFlow(err)
	}
	p.b.touch()
	return give()
}

func (p *peer) updateFlow(_ mihf.Caller, args []any) (answer, error) {
	var req mihv1.FlowUpdate
	if err := variant.DecodeRequest(dictOf(args[0]), &req); err != nil {
		return answer{}, err
	}
	u, err := conv.DecodeFlowUpdate(&req)
	if err != nil {
		return answer{}, err
	}
	at, err := p.present(u.Flow)
	if err != nil {
		return answer{}, err
	}
	if err := at.Update(u); err != nil {
		return answer{}, ofFlow(err)
	}
	p.b.touch()
	return give()
}

func (p *peer) acknowledge(_ mihf.Caller, args []any) (answer, error) {
	var req mihv1.Ack
	if err := variant.DecodeRequest(dictOf(args[0]), &req); err != nil {
		return answer{}, err
	}
	ack, err := conv.DecodeAck(&req)
	if err != nil {
		return answer{}, err
	}
	at, err := p.present(ack.Flow)
	if err != nil {
		return answer{}, err
	}
	if err := at.Acknowledge(ack); err != nil {
		return answer{}, ofFlow(err)
	}
	p.b.touch()
	return give()
}

// ofFlow gives a closed attachment the words that a caller knows.
func ofFlow(err error) error {
	if errors.Is(err, mihf.ErrClosed) {
		return fmt.Errorf("%w: the registrations of this connection have ended: register again", err)
	}
	return err
}
