package natsfront

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/proto/natsproto"
)

// said checks the front's condition.
func (w *bed) said(c mihf.Condition, words string) bool {
	is := w.front.Condition()
	return is.Condition == c && strings.Contains(is.Text, words)
}

// "everything else goes on, whatever NATS does": an address that is taken ends nothing, and
// the server is there when it is free.
func TestAddressTaken(t *testing.T) {
	var c net.ListenConfig
	taken, err := c.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	o := embeddedOptions()
	o.Embedded.Listen = taken.Addr().String()
	w := newBed(t, o)
	w.until("it says why", func() bool { return w.said(mihf.ConditionUnavailable, "address already in use") })
	if _, err := w.front.InProcessConn(); err == nil {
		t.Error("a server that does not run gives connections")
	}
	w.must(taken.Close())
	w.until("it is there", func() bool { return w.said(mihf.ConditionOK, "") })
	n, err := nats.Connect("nats://"+o.Embedded.Listen, nats.UserInfo("alice", secret), nats.CustomInboxPrefix(natsproto.UserInbox("alice")))
	w.must(err)
	defer n.Close()
	w.until("it answers", func() bool {
		_, err := n.RequestWithContext(w.ctx, natsproto.Service(node, natsproto.OpSnapshot), nil)
		return err == nil
	})
}

// The same, and the end comes first.
func TestAddressTakenUntilTheEnd(t *testing.T) {
	var c net.ListenConfig
	taken, err := c.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	o := embeddedOptions()
	o.Embedded.Listen = taken.Addr().String()
	w := newBed(t, o)
	if w.front.Counts().Connected {
		t.Error("connected to what does not run")
	}
	w.stop()
	<-w.ended
}

// A store that cannot be had costs the history, and nothing else; it is tried again.
func TestHistoryCannotBeKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // no directory
		t.Fatal(err)
	}
	o := embeddedOptions()
	o.Embedded.History = &History{Directory: dir, MaxBytes: 1 << 20, MaxAge: time.Hour}
	w := newBed(t, o)
	w.until("it says why", func() bool { return w.said(mihf.ConditionDegraded, dir) })
	c := w.dial("alice")
	w.good(w.ask(c, natsproto.OpSnapshot, nil, nil))
	events := w.subscribe(c, natsproto.Events(node))
	w.see(facts(true))
	w.next(events)
	w.must(os.Remove(dir))
	w.until("it is kept", func() bool { return w.said(mihf.ConditionOK, "") })
}

// history is the stream, as the daemon sees it.
func (w *bed) history() (jetstream.StreamState, bool) {
	js, err := jetstream.New(w.front.svc())
	w.must(err)
	s, err := js.Stream(w.ctx, natsproto.Stream(node))
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, context.DeadlineExceeded) {
		return jetstream.StreamState{}, false
	}
	w.must(err)
	return s.CachedInfo().State, true
}

// Only the daemon writes history: an answer that is sent astray is not kept, and cannot
// change the stream either.
func TestHistoryIsTheDaemons(t *testing.T) {
	o := embeddedOptions()
	o.Embedded.History = &History{Directory: t.TempDir(), MaxBytes: 1 << 20, MaxAge: time.Hour}
	w := newBed(t, o)
	w.until("a history", func() bool { _, there := w.history(); return there })
	w.see(facts(true))
	w.until("an event is kept", func() bool { s, _ := w.history(); return s.Msgs > 0 })
	guest := w.dial("guest")
	stream := natsproto.Stream(node)
	for _, to := range []string{
		natsproto.Event(node, wlan, mihf.LinkDown), "$JS.API.STREAM.DELETE." + stream, "$JS.API.STREAM.PURGE." + stream,
		"$JS." + natsproto.Token(string(node)) + ".API.STREAM.DELETE." + stream,
	} {
		for _, op := range []string{natsproto.OpResume, natsproto.OpSnapshot, "none"} {
			w.must(guest.PublishRequest(natsproto.Service(node, op), to, nil))
		}
	}
	w.refused(w.ask(guest, natsproto.OpSnapshot, nil, nil), mihf.ErrPermission) // all before it was done
	w.must(w.front.svc().FlushWithContext(w.ctx))
	js, err := jetstream.New(w.front.svc())
	w.must(err)
	kept, err := js.Stream(w.ctx, stream)
	w.must(err)
	if m, err := kept.GetLastMsgForSubject(w.ctx, natsproto.Event(node, wlan, mihf.LinkDown)); !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Errorf("an answer is kept as an event: %v, %v", m, err)
	}
}

// A request that is too large does not even wait.
func TestLargeRequestsDoNotWait(t *testing.T) {
	w := newBed(t, embeddedOptions())
	block, held := make(chan struct{}), make(chan struct{}, 100)
	w.front.broker = holding{w.front.broker, held, block}
	defer close(block)
	a := w.dial("alice")
	answers := w.subscribe(a, "_INBOX.alice.>")
	ask := func(h nats.Header, data []byte) {
		w.must(a.PublishMsg(&nats.Msg{Subject: natsproto.Service(node, natsproto.OpSnapshot), Reply: "_INBOX.alice.x", Header: h, Data: data}))
	}
	ask(nil, nil)
	<-held
	ask(nil, make([]byte, 1<<20-100))
	w.refused(w.next(answers), mihf.ErrLimit, "octets")
	ask(nats.Header{"X": {strings.Repeat("x", 1<<17)}}, nil)
	w.refused(w.next(answers), mihf.ErrLimit, "octets")
}

// A pipe in the place of a file of secrets is refused, and not waited for.
func TestSecretFileIsNoPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSecretFile(path); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Error(err)
	}
}
