package natsfront

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/natsproto"
)

func opening(id, user string) nats.Header {
	return nats.Header{natsproto.HeaderSession: {id}, natsproto.HeaderDeliver: {natsproto.UserInbox(user) + "." + id}}
}

func flow(t testing.TB) []byte {
	t.Helper()
	data, err := proto.Marshal(conv.EncodeFlowSpec(&mihf.FlowSpec{Link: wlan, LateFreeze: true}))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// end returns the next message of type end, and what it says.
func (w *bed) end(s *nats.Subscription) error {
	w.Helper()
	for {
		m := w.next(s)
		if m.Header.Get(natsproto.HeaderType) == string(natsproto.TypeEnd) {
			return natsproto.Refused(natsproto.Header(m.Header), m.Data)
		}
	}
}

func (w *bed) flows() int {
	w.Helper()
	s, err := w.broker.Status(w.ctx, w.front.o.Reader)
	w.must(err)
	return s.Flows
}

// A registration opens a session; its hints come to the session's inbox; its end is the end
// of its flows.
func TestSession(t *testing.T) {
	w := newBed(t, embeddedOptions())
	c := w.dial("alice")
	in := w.subscribe(c, "_INBOX.alice.s")
	w.see(facts(true))
	m := w.good(w.ask(c, natsproto.OpRegister, opening("s", "alice"), flow(t)))
	var reg mihv1.Registration
	w.must(proto.Unmarshal(m.Data, &reg))
	m = w.good(w.ask(c, natsproto.OpHeartbeat, nats.Header{natsproto.HeaderSession: {"s"}}, nil))
	if m.Header.Get(natsproto.HeaderLifetime) != fmt.Sprint(int64(natsproto.Lifetime)) {
		t.Errorf("headers %v", m.Header)
	}
	w.see(facts(false))
	for frozen := false; !frozen; {
		m = w.next(in)
		e, err := natsproto.ParseEnvelope(natsproto.Header(m.Header))
		w.must(err)
		var hint mihv1.Hint
		w.must(proto.Unmarshal(m.Data, &hint))
		if e.Type != natsproto.TypeHint || e.At == 0 || hint.GetFlow() != reg.GetFlow() {
			t.Errorf("%+v: %v", e, &hint)
		}
		frozen = hint.GetFreeze() != nil
	}
	ack, err := proto.Marshal(&mihv1.Ack{Flow: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Epoch: 1, Result: 1})
	w.must(err)
	w.must(c.PublishMsg(&nats.Msg{Subject: natsproto.Service(node, natsproto.OpAck), Header: nats.Header{natsproto.HeaderSession: {"s"}}, Data: ack}))
	for m = w.next(in); m.Header.Get(natsproto.HeaderType) == string(natsproto.TypeHint); {
		m = w.next(in)
	}
	if m.Header.Get(natsproto.HeaderType) != string(natsproto.TypeFailed) {
		t.Errorf("an acknowledgement for another's flow: %v", m.Header)
	}
	w.refused(m, mihf.ErrNotFound)
	w.good(w.ask(c, natsproto.OpUnregister, nats.Header{natsproto.HeaderSession: {"s"}}, nil))
	w.refused(w.ask(c, natsproto.OpHeartbeat, nats.Header{natsproto.HeaderSession: {"s"}}, nil), mihf.ErrNotFound)
	_ = w.end(in)
	if n := w.flows(); n != 0 {
		t.Errorf("%d flows are left", n)
	}
}

// A session's id means something to its caller only.
func TestSessionsAreTheirCallers(t *testing.T) {
	w := newBed(t, embeddedOptions())
	a, b := w.dial("alice"), w.dial("bob")
	w.good(w.ask(a, natsproto.OpHeartbeat, opening("s", "alice"), nil))
	w.refused(w.ask(b, natsproto.OpHeartbeat, nats.Header{natsproto.HeaderSession: {"s"}}, nil), mihf.ErrNotFound)
	w.good(w.ask(b, natsproto.OpHeartbeat, opening("s", "bob"), nil))
	w.good(w.ask(b, natsproto.OpUnregister, nats.Header{natsproto.HeaderSession: {"s"}}, nil))
	w.good(w.ask(a, natsproto.OpHeartbeat, nats.Header{natsproto.HeaderSession: {"s"}}, nil))
}

// "A session ends when it was not heard of for Options.Lifetime, and with it the registration
// of its flows."
func TestSessionLapses(t *testing.T) {
	o := embeddedOptions()
	o.Lifetime = 300 * time.Millisecond
	w := newBed(t, o)
	c := w.dial("alice")
	in := w.subscribe(c, "_INBOX.alice.s")
	w.good(w.ask(c, natsproto.OpRegister, opening("s", "alice"), flow(t)))
	if n := w.flows(); n != 1 {
		t.Fatalf("%d flows", n)
	}
	_ = w.end(in)
	w.until("the flow is gone", func() bool { return w.flows() == 0 })
	if n := w.front.Counts(); n.Lapsed != 1 || n.Sessions != 0 {
		t.Errorf("counts %+v", n)
	}
}

// "A caller's sessions are bounded."
func TestSessionsAreBounded(t *testing.T) {
	o := embeddedOptions()
	o.MaxSessions = 2
	w := newBed(t, o)
	a, b := w.dial("alice"), w.dial("bob")
	w.good(w.ask(a, natsproto.OpHeartbeat, opening("1", "alice"), nil))
	w.good(w.ask(a, natsproto.OpHeartbeat, opening("2", "alice"), nil))
	w.refused(w.ask(a, natsproto.OpHeartbeat, opening("3", "alice"), nil), mihf.ErrLimit, "alice", "2")
	w.good(w.ask(b, natsproto.OpHeartbeat, opening("3", "bob"), nil))
	w.good(w.ask(a, natsproto.OpUnregister, nats.Header{natsproto.HeaderSession: {"1"}}, nil))
	w.until("there is room again", func() bool {
		m := w.ask(a, natsproto.OpHeartbeat, opening("3", "alice"), nil)
		return natsproto.Refused(natsproto.Header(m.Header), m.Data) == nil
	})
	if s := &w.front.sessions; len(s.owned) != 2 || s.owned["alice"] != 2 {
		t.Errorf("owned %v", s.owned)
	}
}

// "At the end the broker's last hints are published and flushed": a frozen flow is thawed to
// recovery, and who listens learns that the daemon is gone.
func TestLastWords(t *testing.T) {
	w := newBed(t, embeddedOptions())
	c := w.dial("alice")
	in := w.subscribe(c, "_INBOX.alice.s")
	sync := w.subscribe(c, natsproto.Sync(node))
	w.see(facts(true))
	w.good(w.ask(c, natsproto.OpRegister, opening("s", "alice"), flow(t)))
	w.see(facts(false))
	w.next(in) // the freeze
	w.stop()
	<-w.ended
	for {
		m := w.next(sync)
		if m.Header.Get(natsproto.HeaderType) == string(natsproto.TypeEnd) {
			break
		}
	}
	if err := w.end(in); err == nil {
		t.Error("the session's end does not say why")
	}
}
