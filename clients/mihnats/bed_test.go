package mihnats

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/front/natsfront"
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

// A message that was lost on the way leaves a hole, and what was lost is read again.

// "A message that cannot be read is counted and skipped": events that cannot be, and answers

// that were sent astray.

// "A kind that a newer broker added leaves no hole."

// Without a name, the one node that is there is meant; with several, one must be named.

// What is wrong with the way is said: no server, no entry, a closed client.

// ctx2 ends before the test does.

// "Close ends what is open on the client, and whatever is asked of it later, with

// ErrClientClosed" (clients.Client): trying again is of no use.

// A connection that the library has given up is made anew, and a subscription goes on.

// "An attachment ends with its connection, and when the daemon does not know it any more."

// A hint that was lost on the way ends the attachment as slow: the transport attaches again.

// "A message that was held up on its way is as old as the least that its way is known to have

// taken more than others."

// Events that were kept are read since a moment, oldest first, batch after batch.

// A snapshot that one message cannot hold comes in parts.

// FuzzMessages gives a subscription and an attachment whatever a server might.
