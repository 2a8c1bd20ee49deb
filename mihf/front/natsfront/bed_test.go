package natsfront

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/engine"
	"mihf.dev/proto/natsproto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	node    = mihf.NodeID("node 1") // a name that no token can be
	secret  = "secret"
	wlan    = mihf.LinkID("wifi-00000001")
	patient = 20 * time.Second // only a failure takes so long
)

// users of the tests, and what they may do.
var table = access.New(4240, 0,
	access.Grant{NATSUsers: []string{"alice"}, Roles: access.Of(access.See, access.RegisterOwn, access.Command), AsUID: mihf.Some(uint32(1000))},
	access.Grant{NATSUsers: []string{"bob"}, Roles: access.Of(access.See, access.RegisterOwn), AsUID: mihf.Some(uint32(1001))},
	access.Grant{NATSUsers: []string{"root"}, Roles: access.All, AsUID: mihf.Some(uint32(0))},
	access.Grant{NATSUsers: []string{"guest"}},
)

func grant(who mihf.Caller) Grant {
	return Grant{Events: table.May(who, access.See), AllHints: table.May(who, access.RegisterAny), Owner: table.UID(who)}
}

// bed is a broker with a server in front of it.
type bed struct {
	testing.TB
	ctx    context.Context
	broker *broker.Broker
	front  *Server
	stop   context.CancelFunc // ends the front
	ended  chan struct{}
}

func embeddedOptions() Options {
	e := &Embedded{}
	for _, name := range []string{"alice", "bob", "root", "guest"} {
		e.Users = append(e.Users, User{name, secret})
	}
	return Options{Embedded: e}
}

func newBroker(t testing.TB) *broker.Broker {
	t.Helper()
	cfg := broker.Config{Engine: engine.Defaults(), Access: table, Version: "test"}
	cfg.Engine.Boot, cfg.Engine.Node = 0xb007, node
	b := broker.New(cfg)
	run(t, b.Run)
	return b
}

// run runs a task until stop, or the end of the test, which wait for it.
func run(t testing.TB, task func(context.Context) error) (stop context.CancelFunc, ended chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended = make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(ended)
		if err := task(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return cancel, ended
}

func newBed(t testing.TB, o Options) *bed {
	t.Helper()
	return newBedGranting(t, o, grant)
}

func newBedGranting(t testing.TB, o Options, grant func(mihf.Caller) Grant) *bed {
	t.Helper()
	w := &bed{TB: t, broker: newBroker(t)}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeout(t.Context(), patient)
	t.Cleanup(cancel)
	o.Broker, o.Grant, o.Grace = w.broker, grant, 20*time.Millisecond
	o.Reader = mihf.Caller{UID: mihf.Some(uint32(4240))}
	var err error
	w.front, err = New(o)
	w.must(err)
	w.stop, w.ended = run(t, w.front.Run)
	select {
	case <-w.front.Ready():
	case <-w.ended:
		t.FailNow()
	}
	return w
}

func (w *bed) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// dial connects as a user.
func (w *bed) dial(user string, more ...nats.Option) *nats.Conn {
	w.Helper()
	c, err := nats.Connect("", append([]nats.Option{
		nats.InProcessServer(w.front), nats.UserInfo(user, secret), nats.CustomInboxPrefix(natsproto.UserInbox(user)),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, more...)...)
	w.must(err)
	w.Cleanup(c.Close)
	return c
}

// ask sends a request and returns its answer.
func (w *bed) ask(c *nats.Conn, op string, h nats.Header, data []byte) *nats.Msg {
	w.Helper()
	m, err := c.RequestMsgWithContext(w.ctx, &nats.Msg{Subject: natsproto.Service(node, op), Header: h, Data: data})
	w.must(err)
	return m
}

// refused checks that an answer is a refusal of the kind, with the words in its text.
func (w *bed) refused(m *nats.Msg, want error, words ...string) {
	w.Helper()
	err := natsproto.Refused(natsproto.Header(m.Header), m.Data)
	if !errors.Is(err, want) {
		w.Errorf("%s is answered with %v (%s), want %v", m.Subject, err, m.Data, want)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.Errorf("%q does not say %q", err, word)
		}
	}
}

// good checks that an answer is no refusal.
func (w *bed) good(m *nats.Msg) *nats.Msg {
	w.Helper()
	w.must(natsproto.Refused(natsproto.Header(m.Header), m.Data))
	return m
}

// until asks again and again until it is so.
func (w *bed) until(what string, so func() bool) {
	w.Helper()
	for !so() {
		if w.ctx.Err() != nil {
			w.Fatalf("not in time: %s; counts %+v", what, w.front.Counts())
		}
		time.Sleep(time.Millisecond)
	}
}

// next returns the next message of a subscription.
func (w *bed) next(s *nats.Subscription) *nats.Msg {
	w.Helper()
	m, err := s.NextMsgWithContext(w.ctx)
	w.must(err)
	return m
}

func (w *bed) subscribe(c *nats.Conn, subject string) *nats.Subscription {
	w.Helper()
	s, err := c.SubscribeSync(subject)
	w.must(err)
	w.must(c.FlushWithContext(w.ctx))
	return s
}

// see gives the broker an observation of wlan, made now.
func (w *bed) see(o mihf.Observation) {
	o.At, o.Link, o.Sensor = w.broker.Now(), wlan, "test"
	w.broker.Observe(&o)
}

func facts(up bool) mihf.Observation {
	f := &mihf.LinkFacts{Index: 3, MTUBytes: 1500, AdminUp: true, Carrier: up, Oper: mihf.OperDown}
	if up {
		f.Oper = mihf.OperUp
	}
	return mihf.Observation{Kind: mihf.ObsLink, Facts: f}
}
