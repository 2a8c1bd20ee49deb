package natsfront

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/natsproto"
)

// "A refused request gets a code and a text. A malformed, oversized or unknown one is
// counted."
func TestBadRequests(t *testing.T) {
	w := newBed(t, embeddedOptions())
	c := w.dial("alice")
	h := func(pairs ...string) nats.Header {
		h := nats.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h[pairs[i]] = append(h[pairs[i]], pairs[i+1])
		}
		return h
	}
	garbage := []byte("\xff\xfe{")
	for _, r := range []struct {
		op    string
		h     nats.Header
		data  []byte
		want  error
		words string
	}{
		{"nonsense", nil, nil, mihf.ErrInvalid, "nonsense"},
		{natsproto.OpSnapshot, nil, garbage, mihf.ErrInvalid, "GetSnapshotRequest"},
		{natsproto.OpSnapshot, nil, make([]byte, natsproto.MaxRequest+1), mihf.ErrLimit, "65536"},
		{natsproto.OpHeartbeat, h(natsproto.HeaderSession, "s"), make([]byte, natsproto.MaxRequest+1), mihf.ErrLimit, "65536"}, // not read at all
		{natsproto.OpSnapshot, h(natsproto.HeaderContentType, natsproto.JSON), []byte(`{"x":1}`), mihf.ErrInvalid, "GetSnapshotRequest"},
		{natsproto.OpSnapshot, h(natsproto.HeaderContentType, "text/xml"), nil, mihf.ErrInvalid, "Content-Type"},
		{natsproto.OpSnapshot, h(natsproto.HeaderAccept, "a", natsproto.HeaderAccept, "b"), nil, mihf.ErrInvalid, "Accept"},
		{natsproto.OpCommand, nil, nil, mihf.ErrInvalid, "it has GetParameters ConfigureThresholds"},
		{natsproto.OpCommand, h(natsproto.HeaderMethod, "Reboot"), nil, mihf.ErrInvalid, "Reboot"},
		{natsproto.OpCommand, h(natsproto.HeaderMethod, "GetParameters"), nil, mihf.ErrInvalid, "link"},
		{natsproto.OpCommand, h(natsproto.HeaderMethod, "ConfigureThresholds"), garbage, mihf.ErrInvalid, "payload"},
		{natsproto.OpInfo, nil, garbage, mihf.ErrInvalid, "payload"},
		{natsproto.OpAdmin, h(natsproto.HeaderMethod, "Explain"), nil, mihf.ErrInvalid, "prediction"},
		{natsproto.OpAdmin, h(natsproto.HeaderMethod, "Record"), nil, mihf.ErrInvalid, natsproto.HeaderSession},
		{natsproto.OpRegister, nil, nil, mihf.ErrInvalid, natsproto.HeaderSession},
		{natsproto.OpRegister, h(natsproto.HeaderSession, "s"), nil, mihf.ErrNotFound, natsproto.HeaderDeliver},
		{natsproto.OpHeartbeat, h(natsproto.HeaderSession, "s"), nil, mihf.ErrNotFound, "session s"},
		{natsproto.OpHeartbeat, h(natsproto.HeaderSession, "a.b"), nil, mihf.ErrInvalid, natsproto.HeaderSession},
		{natsproto.OpHeartbeat, h(natsproto.HeaderSession, strings.Repeat("s", 65)), nil, mihf.ErrInvalid, natsproto.HeaderSession},
		{natsproto.OpHeartbeat, h(natsproto.HeaderSession, "s", natsproto.HeaderDeliver, "_INBOX.bob.x"), nil, mihf.ErrPermission, "_INBOX.alice."},
		{natsproto.OpHeartbeat, h(natsproto.HeaderSession, "s", natsproto.HeaderDeliver, "mih.v1.x.sync"), nil, mihf.ErrPermission, "inbox"},
		{natsproto.OpResume, h(natsproto.HeaderDeliver, "_INBOX.bob.x"), nil, mihf.ErrPermission, "inbox"},
		{natsproto.OpResume, nil, garbage, mihf.ErrInvalid, "payload"},
	} {
		w.refused(w.ask(c, r.op, r.h, r.data), r.want, r.words)
	}
	if n := w.front.Counts(); n.Refused != 23 || n.Malformed == 0 || n.Sessions != 0 {
		t.Errorf("counts %+v", n)
	}
	w.good(w.ask(c, natsproto.OpSnapshot, nil, nil))
}

// "JSON (protojson) where the request says so", with the names that --json prints; errors
// too.
func TestJSON(t *testing.T) {
	w := newBed(t, embeddedOptions())
	c := w.dial("alice")
	w.see(facts(true))
	w.until("the link is known", func() bool {
		m := w.good(w.ask(c, natsproto.OpSnapshot, nats.Header{natsproto.HeaderAccept: {natsproto.JSON}}, nil))
		var p mihv1.GetSnapshotResponse
		w.must(protojson.Unmarshal(m.Data, &p))
		return len(p.GetSnapshot().GetLinks()) == 1 && strings.Contains(string(m.Data), `"usable_ipv4"`) ||
			len(p.GetSnapshot().GetLinks()) == 1
	})
	h := nats.Header{natsproto.HeaderContentType: {natsproto.JSON}, natsproto.HeaderMethod: {"GetParameters"}}
	m := w.good(w.ask(c, natsproto.OpCommand, h, []byte(`{"link":"wifi-00000001"}`)))
	if kind := m.Header.Get(natsproto.HeaderContentType); kind != natsproto.JSON || !strings.Contains(string(m.Data), `"state_age"`) {
		t.Errorf("%s: %s", kind, m.Data)
	}
	m = w.ask(c, natsproto.OpCommand, h, []byte(`{"link":"wifi-0000ffff"}`))
	w.refused(m, mihf.ErrNotFound)
	var e struct{ Error string }
	if err := json.Unmarshal(m.Data, &e); err != nil || !strings.Contains(e.Error, "wifi-0000ffff") {
		t.Errorf("%s, %v", m.Data, err)
	}
}

// A panic ends its request only.
func TestPanic(t *testing.T) {
	o := embeddedOptions()
	w := newBed(t, o)
	w.front.broker = panicking{w.front.broker}
	c := w.dial("alice")
	m := w.ask(c, natsproto.OpSnapshot, nil, nil)
	if code := m.Header.Get(natsproto.HeaderError); code != "INTERNAL" || strings.Contains(string(m.Data), "boom") {
		t.Errorf("%s: %s", code, m.Data)
	}
	w.good(w.ask(c, natsproto.OpInfo, nil, nil))
	if n := w.front.Counts(); n.Panics != 1 {
		t.Errorf("%d panics", n.Panics)
	}
}

type panicking struct{ front.Broker }

// A flood of one caller is refused beyond its share; another is served.
func TestFlood(t *testing.T) {
	o := embeddedOptions()
	o.MaxQueued = 8
	w := newBed(t, o)
	block, held := make(chan struct{}), make(chan struct{}, 100)
	w.front.broker = holding{w.front.broker, held, block}
	a, b := w.dial("alice"), w.dial("bob")
	answers := w.subscribe(a, "_INBOX.alice.>")
	const many = 100
	for i := range many {
		w.must(a.PublishRequest(natsproto.Service(node, natsproto.OpSnapshot), fmt.Sprintf("_INBOX.alice.%d", i), nil))
	}
	<-held
	for range many - 1 - o.MaxQueued {
		w.refused(w.next(answers), mihf.ErrLimit, "alice", "8")
	}
	w.good(w.ask(b, natsproto.OpInfo, nil, nil))
	close(block)
	for range 1 + o.MaxQueued {
		w.good(w.next(answers))
	}
}

// An answer that is sent astray is no event: it lacks what an event has.
func TestAnswersAreNoEvents(t *testing.T) {
	w := newBed(t, embeddedOptions())
	c, r := w.dial("alice"), w.dial("root")
	events := w.subscribe(r, natsproto.Events(node))
	w.must(c.PublishRequest(natsproto.Service(node, natsproto.OpSnapshot), natsproto.Event(node, wlan, mihf.LinkDown), nil))
	w.until("it was answered", func() bool { return w.front.Counts().Requests > 0 })
	w.see(facts(true))
	for {
		m := w.next(events)
		e, err := natsproto.ParseEnvelope(natsproto.Header(m.Header))
		if err != nil {
			continue
		}
		var p mihv1.Event
		w.must(proto.Unmarshal(m.Data, &p))
		if e.Sequence == 0 || e.Sequence != p.GetSequence() {
			t.Errorf("message %v", m.Header)
		}
		if p.GetLinkUp() != nil {
			return
		}
	}
}

// Which nodes are there is answered to everyone who may connect.
func TestNodes(t *testing.T) {
	w := newBed(t, embeddedOptions())
	m, err := w.dial("guest").RequestWithContext(w.ctx, natsproto.Nodes, nil)
	w.must(err)
	if string(m.Data) != string(node) {
		t.Errorf("%q", m.Data)
	}
}

// What is larger than a message goes in parts, and comes whole.
func TestParts(t *testing.T) {
	w := newBed(t, embeddedOptions())
	c := w.dial("root")
	in := w.subscribe(c, "_INBOX.root.parts")
	payload := make([]byte, 2*maxPayload+77)
	for i := range payload {
		payload[i] = byte(i >> 8)
	}
	w.must(w.front.deliver("_INBOX.root.parts", &natsproto.Envelope{Type: natsproto.TypeSnapshot}, payload))
	var got []byte
	for n := 1; ; n++ {
		m := w.next(in)
		e, err := natsproto.ParseEnvelope(natsproto.Header(m.Header))
		w.must(err)
		if e.Part.N != n {
			t.Fatalf("part %+v", e.Part)
		}
		if got = append(got, m.Data...); e.Part.N == e.Part.Of {
			break
		}
	}
	if string(got) != string(payload) {
		t.Error("the parts are not the whole")
	}
}

func TestServerLogIsBounded(t *testing.T) {
	now := time.Unix(0, 0)
	l := &serverLog{now: func() time.Time { return now }}
	written := 0
	for range 100 {
		if _, ok := l.admit(); ok {
			written++
		}
	}
	now = now.Add(time.Second)
	if omitted, ok := l.admit(); written != maxLines || !ok || omitted != 100-maxLines {
		t.Errorf("%d written, then %d omitted, %v", written, omitted, ok)
	}
}
