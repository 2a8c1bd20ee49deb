package mihnats

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"mihf.dev/clients"
	"mihf.dev/clients/broadcast"
	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/front/natsfront"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/natsproto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	node    = mihf.NodeID("n")
	user    = "alice"
	secret  = "secret"
	patient = 20 * time.Second // only a failure takes so long
)

var table = access.New(4240, 0, access.Grant{NATSUsers: []string{user, "external"}, Roles: access.All, AsUID: mihf.Some(uint32(0))})

func grant(who mihf.Caller) natsfront.Grant {
	return natsfront.Grant{Events: table.May(who, access.See), AllHints: table.May(who, access.RegisterAny), Owner: table.UID(who)}
}

// bed is what a client speaks to.
type bed struct {
	testing.TB
	ctx context.Context
}

func newBed(t testing.TB) *bed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	t.Cleanup(cancel)
	return &bed{t, ctx}
}

func (w *bed) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// run runs a task until stop, or the end of the test, which wait for it.
func (w *bed) run(task func(context.Context) error) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := task(ctx); err != nil {
			w.Error(err)
		}
	})
	stop = func() { cancel(); wg.Wait() }
	w.Cleanup(stop)
	return stop
}

func (w *bed) broker(boot mihf.BootID, of mihf.NodeID) (b *broker.Broker, stop func()) {
	w.Helper()
	cfg := broker.Config{Engine: engine.Defaults(), Access: table}
	cfg.Engine.Boot, cfg.Engine.Node = boot, of
	b = broker.New(cfg)
	return b, w.run(b.Run)
}

// front serves a broker over a server outside, and waits until it does.
func (w *bed) front(b *broker.Broker, url string) (f *natsfront.Server, stop func()) {
	w.Helper()
	f, stop = w.serve(natsfront.Options{Broker: b, External: &natsfront.External{Servers: []string{url}}})
	c := w.dial(url, Options{Node: b.Node()})
	w.until("the front answers", func() bool { _, err := c.Status(w.ctx); return err == nil })
	return f, stop
}

// embedded serves a broker by a server in the process.
func (w *bed) embedded(b *broker.Broker, history *natsfront.History) *natsfront.Server {
	w.Helper()
	f, _ := w.serve(natsfront.Options{Broker: b, Embedded: &natsfront.Embedded{Users: []natsfront.User{{Name: user, Secret: secret}}, History: history}})
	return f
}

func (w *bed) serve(o natsfront.Options) (f *natsfront.Server, stop func()) {
	w.Helper()
	o.Grant, o.Reader, o.Grace = grant, mihf.Caller{UID: mihf.Some(uint32(4240))}, 10*time.Millisecond
	f, err := natsfront.New(o)
	w.must(err)
	stop = w.run(f.Run)
	<-f.Ready()
	return f, stop
}

// outside starts a NATS server; port 0 is any.
func (w *bed) outside(port int, adjust func(*server.Options)) (url string, stop func()) {
	w.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true}
	if port == 0 {
		o.Port = server.RANDOM_PORT
	}
	if adjust != nil {
		adjust(o)
	}
	s, err := server.NewServer(o)
	w.must(err)
	s.Start()
	if !s.ReadyForConnections(patient) {
		w.Fatal("the server is not ready")
	}
	stop = func() { s.Shutdown(); s.WaitForShutdown() }
	w.Cleanup(stop)
	return s.ClientURL(), stop
}

func (w *bed) dial(url string, o Options) *Client {
	w.Helper()
	c, err := Dial(url, o)
	w.must(err)
	w.Cleanup(func() { _ = c.Close() })
	return c
}

// inside dials the server in the process.
func (w *bed) inside(f *natsfront.Server) *Client {
	w.Helper()
	return w.dial("", Options{User: user, Password: secret, InProcess: f, Node: node})
}

func (w *bed) until(what string, so func() bool) {
	w.Helper()
	for !so() {
		if w.ctx.Err() != nil {
			w.Fatalf("not in time: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// follow subscribes; each call of the result reads one delivery and checks it: of the kind,
// and an event with the mark.
func (w *bed) follow(c *Client) (want func(k mihf.DeliveryKind, mark int)) {
	w.Helper()
	feed, err := c.Follow(w.ctx, mihf.SubscribeRequest{})
	w.must(err)
	w.Cleanup(feed.Close)
	buf := make([]mihf.Delivery, 1)
	return func(k mihf.DeliveryKind, mark int) {
		w.Helper()
		if _, err := feed.Next(buf); err != nil {
			w.Fatal(err)
		}
		if d := &buf[0]; d.Kind != k || k == mihf.DeliverEvent && d.Event.Gap != time.Duration(mark) {
			w.Fatalf("delivery %+v, want kind %d with mark %d", d, k, mark)
		}
	}
}

// mark makes an event that tests recognise.
func mark(b *broker.Broker, n int) {
	b.Observe(&mihf.Observation{At: b.Now(), Kind: mihf.ObsResume, Gap: time.Duration(n)})
}

// A connection that is lost loses nothing: the subscription resumes where it was. A broker
// that was restarted is seen by a gap and a snapshot.
func TestFollowOverRestarts(t *testing.T) {
	w := newBed(t)
	url, stopServer := w.outside(0, nil)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "nats://"))
	w.must(err)
	b, stopBroker := w.broker(1, node)
	f, stopFront := w.front(b, url)
	c := w.dial(url, Options{})
	want := w.follow(c)
	want(mihf.DeliverSnapshot, 0)
	mark(b, 1)
	want(mihf.DeliverEvent, 1)

	stopServer()
	w.until("the front sees it", func() bool { return !f.Counts().Connected })
	mark(b, 2) // while nobody hears
	w.outside(atoi(t, port), nil)
	want(mihf.DeliverEvent, 2)
	mark(b, 3)
	want(mihf.DeliverEvent, 3)

	stopBroker()
	stopFront()
	b, _ = w.broker(2, node)
	w.front(b, url)
	want(mihf.DeliverGap, 0)
	want(mihf.DeliverSnapshot, 0)
	mark(b, 4)
	want(mihf.DeliverEvent, 4)
}

func atoi(t *testing.T, s string) (n int) {
	t.Helper()
	for _, d := range s {
		n = 10*n + int(d-'0')
	}
	return n
}

// A message that was lost on the way leaves a hole, and what was lost is read again.
func TestLostMessage(t *testing.T) {
	w := newBed(t)
	b, _ := w.broker(1, node)
	c := w.inside(w.embedded(b, nil))
	want := w.follow(c)
	want(mihf.DeliverSnapshot, 0)
	c.mu.Lock()
	listening := c.take(nil)
	c.mu.Unlock()
	for _, l := range listening { // nothing is heard any more of what is published now
		for _, s := range l.subs {
			w.must(s.Unsubscribe())
		}
	}
	w.must(c.conn().FlushWithContext(w.ctx))
	mark(b, 1)
	for _, l := range listening {
		l.cut(errors.New("told so"))
	}
	want(mihf.DeliverEvent, 1)
	mark(b, 2)
	want(mihf.DeliverEvent, 2)
}

// "A message that cannot be read is counted and skipped": events that cannot be, and answers
// that were sent astray.
func TestUnreadable(t *testing.T) {
	w := newBed(t)
	url, _ := w.outside(0, nil)
	b, _ := w.broker(1, node)
	w.front(b, url)
	c := w.dial(url, Options{Node: node})
	want := w.follow(c)
	want(mihf.DeliverSnapshot, 0)
	by, err := nats.Connect(url) // this server lets everyone publish
	w.must(err)
	t.Cleanup(by.Close)
	subject := natsproto.Event(node, "", mihf.ResumedFromSuspend)
	good := nats.Header{natsproto.HeaderPrevious: {"1"}}
	bad := []*nats.Msg{
		{Subject: subject, Data: []byte("x")},
		{Subject: subject, Header: nats.Header{natsproto.HeaderPrevious: {"x"}}},
		{Subject: subject, Header: nats.Header{natsproto.HeaderPrevious: {"1", "2"}}},
		{Subject: subject, Header: good, Data: []byte("\xff\xfe")},
		{Subject: natsproto.Sync(node), Header: nats.Header{natsproto.HeaderType: {"alive"}}},
		{Subject: "mih.v1.n.event.%zz.link_up", Header: good},
	}
	for _, m := range bad {
		skipped := c.Skipped()
		w.until("it is counted", func() bool { // the subscription may be catching up now
			w.must(by.PublishMsg(m))
			w.must(by.FlushWithContext(w.ctx))
			return c.Skipped() > skipped
		})
	}
	mark(b, 1)
	want(mihf.DeliverEvent, 1)
}

// "A kind that a newer broker added leaves no hole."
func TestUnknownKind(t *testing.T) {
	w := newBed(t)
	c := &Client{life: clients.NewLife(), listening: map[*listener]struct{}{}}
	h := newHearing(c)
	w.run(func(ctx context.Context) error { h.read(ctx); return nil })
	s := broadcast.New(broadcast.Options{Boot: 1, Reached: 5, Request: mihf.SubscribeRequest{After: 5}, Live: h.live, Lost: h.lost, Why: h.reason, Close: h.close})
	defer s.Close()
	for i, p := range []*mihv1.Event{{}, {Kind: &mihv1.Event_Resync{Resync: &mihv1.Resync{}}}} {
		p.Sequence, p.BootId = uint64(i)+6, mihf.BootID(1).String()
		data, err := proto.Marshal(p)
		w.must(err)
		e := natsproto.Envelope{Previous: uint64(i) + 5}
		h.heard <- &nats.Msg{Subject: natsproto.Event(node, "", mihf.Resync), Header: e.Header(), Data: data}
	}
	buf := make([]mihf.Delivery, 2)
	if n, err := s.Next(buf); n != 1 || err != nil || buf[0].Sequence() != 7 || buf[0].Previous != 5 || c.Skipped() != 1 {
		t.Errorf("%d, %v: %+v; %d skipped", n, err, buf[0], c.Skipped())
	}
	var p past
	p.add(&mihf.Delivery{Kind: mihf.DeliverHint, Previous: 3, Hint: mihf.Hint{Sequence: 4}})
	p.add(&mihf.Delivery{Kind: mihf.DeliverEvent, Previous: 4, Event: mihf.Event{Sequence: 5, Kind: mihf.Resync}})
	if len(p.items) != 1 || p.items[0].Previous != 3 {
		t.Errorf("caught up with %+v", p.items)
	}
}

// Without a name, the one node that is there is meant; with several, one must be named.
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

// What is wrong with the way is said: no server, no entry, a closed client.
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

// ctx2 ends before the test does.
func (w *bed) ctx2(after time.Duration) context.Context {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, after)
	w.Cleanup(cancel)
	return ctx
}

// "Close ends what is open on the client, and whatever is asked of it later, with
// ErrClientClosed" (clients.Client): trying again is of no use.
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

// A connection that the library has given up is made anew, and a subscription goes on.
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

// "An attachment ends with its connection, and when the daemon does not know it any more."
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

// A hint that was lost on the way ends the attachment as slow: the transport attaches again.
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

// "A message that was held up on its way is as old as the least that its way is known to have
// taken more than others."
func TestWay(t *testing.T) {
	second := mihf.Time(time.Second)
	var w way
	for _, c := range []struct {
		now, at mihf.Time
		want    time.Duration
	}{
		{100 * second, 0, 0},            // does not say
		{100 * second, 500 * second, 0}, // the first: nothing to compare with
		{101 * second, 501 * second, 0}, // as quick
		{103 * second, 502 * second, time.Second},
		{104 * second, 504*second + 1, 0},                // quicker still
		{164 * second, 504 * second, 60*time.Second + 1}, // a server that stood still for a minute
		{165 * second, 565 * second, 1},
		{196 * second, 596 * second, 0}, // what is older is forgotten: clocks drift
		{227 * second, 626 * second, time.Second},
	} {
		if got := w.late(c.now, c.at); got != c.want {
			t.Errorf("sent at %v, here at %v: %v late, want %v", c.at, c.now, got, c.want)
		}
	}
}

// Events that were kept are read since a moment, oldest first, batch after batch.
func TestHistory(t *testing.T) {
	w := newBed(t)
	b, _ := w.broker(1, node)
	c := w.inside(w.embedded(b, &natsfront.History{Directory: t.TempDir(), MaxBytes: 8 << 20, MaxAge: time.Hour}))
	read := func(since time.Time) (marks []time.Duration) {
		for p, err := range c.History(w.ctx, since) {
			w.must(err)
			if p.Event.Kind != mihf.ResumedFromSuspend {
				continue
			}
			if age := c.clock.Now().Sub(p.Event.At); age < 0 || age > patient || time.Since(p.At) > patient {
				t.Errorf("event %v old, kept at %v", age, p.At)
			}
			marks = append(marks, p.Event.Gap)
		}
		return marks
	}
	began := time.Now()
	w.until("the stream is there", func() bool {
		mark(b, 7000)
		for _, err := range c.History(w.ctx, began) {
			return err == nil
		}
		return false
	})
	time.Sleep(2 * time.Millisecond) // so that a moment lies between
	then := time.Now()
	const many = historyBatch + 10
	for n := range many {
		mark(b, n+1)
	}
	var marks []time.Duration
	w.until("all are kept", func() bool { marks = read(then); return len(marks) >= many })
	for i, m := range marks[len(marks)-many:] {
		if m != time.Duration(i+1) {
			t.Fatalf("mark %d in place %d", m, i)
		}
	}
	for _, err := range c.History(w.ctx, began) {
		w.must(err)
		break // who has enough gets no more
	}
}

func TestNoHistory(t *testing.T) {
	w := newBed(t)
	url, _ := w.outside(0, nil)
	b, _ := w.broker(1, node)
	w.front(b, url)
	for _, err := range w.dial(url, Options{Node: node}).History(w.ctx, time.Now()) {
		if !errors.Is(err, mihf.ErrNotFound) || !strings.Contains(err.Error(), "history") {
			t.Error(err)
		}
		return
	}
	t.Error("no history, and no error")
}

// A snapshot that one message cannot hold comes in parts.
func TestLongSnapshot(t *testing.T) {
	w := newBed(t)
	url, _ := w.outside(0, func(o *server.Options) { o.MaxPayload = 32 << 10 })
	b, _ := w.broker(1, node)
	w.front(b, url)
	c := w.dial(url, Options{Node: node})
	at, err := c.Attach(w.ctx)
	w.must(err)
	defer at.Close()
	const flows = 600
	for range flows {
		_, err := at.Register(mihf.FlowSpec{Link: "wifi-00000001", Group: strings.Repeat("g", 60)})
		w.must(err)
	}
	s, err := c.Snapshot(w.ctx)
	w.must(err)
	if len(s.Flows) != flows {
		t.Errorf("%d flows", len(s.Flows))
	}
	want := w.follow(c)
	want(mihf.DeliverSnapshot, 0)
}

// FuzzMessages gives a subscription and an attachment whatever a server might.
func FuzzMessages(f *testing.F) {
	good := (&natsproto.Envelope{Type: natsproto.TypeHint, Previous: 3}).Header()
	data, err := proto.Marshal(&mihv1.Hint{Flow: "F", Sequence: 4, BootId: "00000001", Kind: &mihv1.Hint_Freeze{Freeze: &mihv1.Freeze{}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("mih.v1.n.hint.F.freeze", "hint", good[natsproto.HeaderPrevious][0], "1/2", data)
	f.Add("mih.v1.n.sync", "hole", "1", "", []byte{})
	f.Add("mih.v1.n.event._.resync", "", "1", "", []byte("\x0a\x00"))
	f.Fuzz(func(t *testing.T, subject, kind, previous, part string, data []byte) {
		c := &Client{life: clients.NewLife(), listening: map[*listener]struct{}{}}
		h := newHearing(c)
		m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{
			natsproto.HeaderType: {kind}, natsproto.HeaderPrevious: {previous}, natsproto.HeaderPart: {part},
		}}
		if part == "" {
			delete(m.Header, natsproto.HeaderPart)
		}
		h.take(t.Context(), m)
		a := &attachment{c: c, done: make(chan struct{})}
		var d mihf.Delivery
		a.take(m, &d)
		var p past
		_, _ = c.past(&p, &parts{}, m)
		r := recorder{c: c, write: func(*mihf.Observation) error { return nil }}
		_, _ = r.take(m)
		pr := pastReader{c: c}
		_, _ = pr.take(m)
	})
}
