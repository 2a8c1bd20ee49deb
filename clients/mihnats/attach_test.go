package mihnats

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/natsproto"
)

func TestGivenUp(t *testing.T) {
	w := newBed(t)
	b, _ := w.broker(1, node)
	c := w.inside(w.embedded(b, nil))
	want := w.follow(c)
	want(mihf.DeliverSnapshot, 0)
	c.conn().Close()
	mark(b, 1)
	want(mihf.DeliverEvent, 1)
	if _, err := c.Snapshot(w.ctx); err != nil {
		t.Error(err)
	}
}

func TestAttachmentEnds(t *testing.T) {
	w := newBed(t)
	url, stopServer := w.outside(0, nil)
	b, _ := w.broker(1, node)
	w.front(b, url)
	c := w.dial(url, Options{Node: node})
	at, err := c.Attach(w.ctx)
	w.must(err)
	defer at.Close()
	stopServer()
	<-at.Done()
	if err := at.Err(); !errors.Is(err, mihf.ErrClosed) {
		t.Error(err)
	}
	if _, err := at.Register(mihf.FlowSpec{}); !errors.Is(err, mihf.ErrClosed) {
		t.Error(err)
	}
}

func TestLostHint(t *testing.T) {
	w := newBed(t)
	a := &attachment{c: &Client{life: clients.NewLife()}, heard: make(chan *nats.Msg, 4), done: make(chan struct{})}
	hint := func(previous, sequence uint64) {
		data, err := proto.Marshal(&mihv1.Hint{
			Flow: "F", Sequence: sequence, BootId: mihf.BootID(1).String(), Kind: &mihv1.Hint_Unfreeze{Unfreeze: &mihv1.Unfreeze{Cause: 1}},
		})
		w.must(err)
		e := natsproto.Envelope{Type: natsproto.TypeHint, Previous: previous}
		a.heard <- &nats.Msg{Header: e.Header(), Data: data}
	}
	hint(0, 3)
	hint(3, 5)
	hint(7, 9)
	buf := make([]mihf.Delivery, 2)
	if n, err := a.Next(buf); n != 2 || err != nil || buf[1].Hint.Sequence != 5 {
		t.Fatalf("%d, %v", n, err)
	}
	if n, err := a.Next(buf); n != 0 || !errors.Is(err, mihf.ErrSlow) {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := a.Next(nil); !errors.Is(err, mihf.ErrInvalid) {
		t.Error(err)
	}
}
