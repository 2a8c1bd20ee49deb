package natsfront

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// What is published directly comes whole and in order, and is passed on when flush returns.
func TestDirect(t *testing.T) {
	w := newBed(t, embeddedOptions())
	in := w.subscribe(w.dial("alice"), "_INBOX.alice.s")
	d := w.front.link.Load().direct
	const many = 100
	for i := range many {
		data := make([]byte, i*i)
		w.must(d.publish(&nats.Msg{Subject: "_INBOX.alice.s", Header: nats.Header{"N": {fmt.Sprint(i)}, "B": {"x: y"}}, Data: data}))
	}
	w.must(d.flush(patient))
	for i := range many {
		m := w.next(in)
		if m.Header.Get("N") != fmt.Sprint(i) || m.Header.Get("B") != "x: y" || len(m.Data) != i*i {
			t.Fatalf("message %d: %v, %d octets", i, m.Header, len(m.Data))
		}
	}
}

// connection returns the number of the connection for hints; 0: there is none.
func connection(w *bed) uint64 {
	all, err := w.front.own.server.Load().Connz(&server.ConnzOptions{})
	w.must(err)
	for _, c := range all.Conns {
		if c.Name == "mihfd "+string(node)+" hints" {
			return c.Cid
		}
	}
	return 0
}

// A direct connection that the server ends is made anew.
func TestDirectIsLost(t *testing.T) {
	w := newBed(t, embeddedOptions())
	in := w.subscribe(w.dial("alice"), "_INBOX.alice.s")
	first := connection(w)
	w.must(w.front.own.server.Load().DisconnectClientByID(first))
	w.until("there is another", func() bool { n := connection(w); return n != 0 && n != first })
	w.until("it is used", func() bool {
		return w.front.link.Load().direct.publish(&nats.Msg{Subject: "_INBOX.alice.s", Header: nats.Header{"N": {"1"}}}) == nil
	})
	w.next(in)
}

// Who cannot prove who it is gets no direct connection either, and is told.
func TestDirectIsRefused(t *testing.T) {
	w := newBed(t, embeddedOptions())
	key, err := nkeys.CreateUser()
	w.must(err)
	if _, err := dialDirect(w.front.own.server.Load(), key, "x", func() { t.Error("lost") }); err == nil {
		t.Error("let in")
	} else {
		t.Log(err)
	}
}
