package mihnats

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"mihf.dev/clients"
	"mihf.dev/mihf"
)

func TestNodes(t *testing.T) {
	w := newBed(t)
	url, _ := w.outside(0, nil)
	c := w.dial(url, Options{})
	if _, err := c.Snapshot(w.ctx); !errors.Is(err, mihf.ErrClosed) {
		t.Errorf("nobody there: %v", err)
	}
	for i, name := range []mihf.NodeID{"one", "t.w o"} {
		b, _ := w.broker(mihf.BootID(i+1), name)
		w.front(b, url)
		if i == 0 {
			w.until("it is found", func() bool { s, err := w.dial(url, Options{}).Snapshot(w.ctx); return err == nil && s.Node == name })
		}
	}
	var nodes []mihf.NodeID
	w.until("both are found", func() bool {
		var err error
		nodes, err = c.Nodes(w.ctx)
		w.must(err)
		return len(nodes) == 2
	})
	if nodes[0] != "one" || nodes[1] != "t.w o" {
		t.Errorf("%q", nodes)
	}
	if _, err := c.Snapshot(w.ctx); !errors.Is(err, mihf.ErrInvalid) || !strings.Contains(err.Error(), "t.w o") {
		t.Errorf("%v does not say which there are", err)
	}
	s, err := w.dial(url, Options{Node: "t.w o"}).Snapshot(w.ctx)
	w.must(err)
	if s.Node != "t.w o" {
		t.Errorf("snapshot of %q", s.Node)
	}
	if _, err := w.dial(url, Options{Node: "three"}).Snapshot(w.ctx); !errors.Is(err, mihf.ErrClosed) {
		t.Errorf("a node that is not there: %v", err)
	}
}

func TestErrors(t *testing.T) {
	w := newBed(t)
	url, stop := w.outside(0, func(o *server.Options) { o.Username, o.Password = user, secret })
	if _, err := w.dial(url, Options{User: user, Password: "wrong", Node: node, Timeout: time.Second}).Snapshot(w.ctx2(time.Second)); !errors.Is(err, mihf.ErrPermission) {
		t.Errorf("wrong password: %v", err)
	}
	if _, err := w.dial(url, Options{User: user, Password: secret, Node: node}).Snapshot(w.ctx); !errors.Is(err, mihf.ErrClosed) {
		t.Errorf("no daemon: %v", err)
	}
	stop()
	if _, err := w.dial(url, Options{Node: node}).Snapshot(w.ctx2(100 * time.Millisecond)); !errors.Is(err, mihf.ErrClosed) {
		t.Errorf("no server: %v", err)
	}
	c := w.dial(url, Options{Node: node})
	w.must(c.Close())
	w.must(c.Close())
	if _, err := c.Snapshot(w.ctx); !errors.Is(err, mihf.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, err := c.Follow(w.ctx, mihf.SubscribeRequest{}); !errors.Is(err, mihf.ErrClosed) {
		t.Errorf("Follow, closed: %v", err)
	}
	if _, err := c.Attach(w.ctx); !errors.Is(err, mihf.ErrClosed) {
		t.Errorf("Attach, closed: %v", err)
	}
	if _, err := Dial("://", Options{}); err == nil {
		t.Error("no URL is taken")
	}
	if _, err := Dial(url, Options{NkeySeed: "/does/not/exist"}); err == nil {
		t.Error("a seed that is not there is taken")
	}
}

func (w *bed) ctx2(after time.Duration) context.Context {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, after)
	w.Cleanup(cancel)
	return ctx
}

func TestCloseEndsWhatIsOpen(t *testing.T) {
	w := newBed(t)
	b, _ := w.broker(1, node)
	c := w.inside(w.embedded(b, nil))
	feed, err := c.Follow(w.ctx, mihf.SubscribeRequest{})
	w.must(err)
	defer feed.Close()
	at, err := c.Attach(w.ctx)
	w.must(err)
	defer at.Close()
	buf := make([]mihf.Delivery, 1)
	_, err = feed.Next(buf)
	w.must(err)
	ended := make(chan error, 2)
	go func() { _, err := feed.Next(buf); ended <- err }()
	go func() { _, err := at.Next(make([]mihf.Delivery, 1)); ended <- err }()
	w.must(c.Close())
	for range 2 {
		if err := <-ended; !errors.Is(err, clients.ErrClientClosed) {
			t.Errorf("ends with %v", err)
		}
	}
	<-at.Done()
	if err := at.Acknowledge(mihf.Ack{}); !errors.Is(err, clients.ErrClientClosed) {
		t.Error(err)
	}
	if _, err := c.Status(w.ctx); !errors.Is(err, clients.ErrClientClosed) {
		t.Error(err)
	}
	if _, err := c.Attach(w.ctx); !errors.Is(err, clients.ErrClientClosed) {
		t.Error(err)
	}
}
