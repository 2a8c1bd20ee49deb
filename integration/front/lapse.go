package front

import (
	"context"
	"sync"
	"time"

	"mihf.dev/clients"
	"mihf.dev/clients/attach"
	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
)

// told is a transport that notes what it is told.
type told struct {
	frozen chan time.Time
	thawed chan mihf.Unfreeze
}

func (t *told) RTT() time.Duration { return 100 * time.Millisecond }

func (t *told) Freeze(mihf.Freeze) {
	select {
	case t.frozen <- time.Now():
	default: // renewed
	}
}

func (t *told) Unfreeze(u mihf.Unfreeze) { t.thawed <- u }

func (t *told) Characteristics(mihf.LCI) {}

const shortLease = 400 * time.Millisecond

func shortLeases(c *broker.Config) { c.Engine.Hint.Lease = shortLease }

// deaf is a client whose attachment gives nothing more once it gave a Freeze.
type deaf struct{ clients.Client }

func (c deaf) Attach(ctx context.Context) (mihf.Attachment, error) {
	at, err := c.Client.Attach(ctx)
	return &deafened{Attachment: at}, err
}

type deafened struct {
	mihf.Attachment
	frozen bool // the reader's
}

func (a *deafened) Next(buf []mihf.Delivery) (int, error) {
	if a.frozen {
		<-a.Done()
		return 0, a.Err()
	}
	n, err := a.Attachment.Next(buf[:1])
	a.frozen = n > 0 && buf[0].Kind == mihf.DeliverHint && buf[0].Hint.Kind == mihf.HintFreeze
	return n, err
}

// A frozen flow that hears nothing more, no renewal either, thaws when its lease lapses, to
// recovery.
func testLapse(w *bed) {
	c := w.dial(w.T, alice)
	w.see(facts(true))
	to := &told{frozen: make(chan time.Time, 1), thawed: make(chan mihf.Unfreeze, 8)}
	flow := attach.New(to, deaf{c}, attach.Options{Spec: spec})
	ctx, leave := context.WithCancel(w.ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = flow.Run(ctx) }) // it ends with ctx
	defer running.Wait()
	defer leave()
	w.until("the flow is registered", func() bool {
		s, err := c.Snapshot(w.ctx)
		w.must(err)
		return len(s.Flows) == 1
	})
	w.see(facts(false))
	began := <-to.frozen
	if u := <-to.thawed; !u.Recovery {
		w.Errorf("thawed by %+v, want to recovery", u)
	}
	if held := time.Since(began); held < shortLease/2 { // which counts from the arrival
		w.Errorf("the freeze held %v, its lease is %v", held, shortLease)
	}
}

// everyByte has every octet of ASCII but NUL, and some others.
var everyByte = func() string {
	b := make([]byte, 0, 140)
	for c := byte(1); c < 0x80; c++ {
		b = append(b, c)
	}
	return string(b) + "é\u00ff→"
}()

func anyNode(c *broker.Config) { c.Engine.Node = mihf.NodeID(everyByte) }

// A node may have any name: it is the same through all fronts, and what is said of it is
// heard.
func testEveryByte(w *bed) {
	c := w.dial(w.T, alice)
	r := w.follow(c, mihf.SubscribeRequest{Hints: true})
	if got := r.snapshot().Node; string(got) != everyByte {
		w.Errorf("the snapshot is of node %q, want %q", got, everyByte)
	}
	s, err := c.Status(w.ctx)
	w.must(err)
	if string(s.Node) != everyByte {
		w.Errorf("the status is of node %q", s.Node)
	}
	w.see(facts(true))
	r.event(mihf.LinkUp)
	at := w.attach(c)
	_, err = at.Register(spec)
	w.must(err)
	w.see(facts(false))
	w.hint(at, mihf.HintFreeze)
}
