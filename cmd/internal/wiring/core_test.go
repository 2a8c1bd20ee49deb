package wiring

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/clock"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/daemon"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/linkstate"
	"mihf.dev/mihf/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDefaultsAreEqual: what a configuration has by default is what the parts have.
func TestDefaultsAreEqual(t *testing.T) {
	c := config.Defaults()
	if d := cmp.Diff(engine.Defaults(), engineConfig(&c), cmpopts.IgnoreFields(engine.Config{}, "Boot", "Node", "NewPredictor")); d != "" {
		t.Errorf("engine (-its defaults +ours)\n%s", d)
	}
	if b, want := c.Broker, (queue.Sizes{Kept: queue.DefaultKept, Hints: queue.DefaultHints, Loose: queue.DefaultLoose}); (queue.Sizes{Kept: b.Replay, Hints: b.Hints, Loose: b.Reports}) != want {
		t.Errorf("broker: replay %d, hints %d, reports %d; queue has %+v", b.Replay, b.Hints, b.Reports, want)
	}
	if c.Link.MaxThresholdsPerUser > linkstate.MaxThresholds || !strings.Contains(config.Sample(), fmt.Sprintf("1 to %d.\n#max_thresholds_per_user", linkstate.MaxThresholds)) {
		t.Errorf("the sample does not bound what one user may set by %d", linkstate.MaxThresholds)
	}
	if _, err := Methods().Find(c.Predictor.Method); err != nil {
		t.Error(err)
	}
}

// TestBrokerDefaultsAreEqual asks a broker without configuration for its limits by reaching
// them.
func TestBrokerDefaultsAreEqual(t *testing.T) { synctest.Test(t, testBrokerDefaultsAreEqual) }

func testBrokerDefaultsAreEqual(t *testing.T) {
	c := config.Defaults().Broker
	b := broker.New(broker.Config{Engine: engine.Defaults(), Clock: clock.Process()})
	observed := 0
	go func() {
		for range c.Inputs + 1 {
			b.Observe(&mihf.Observation{Kind: mihf.ObsTruth})
			observed++
		}
	}()
	if synctest.Wait(); observed != c.Inputs {
		t.Errorf("%d inputs wait, want %d", observed, c.Inputs)
	}
	stop := start(t, BrokerTask(b))
	at, err := b.Attach(t.Context(), mihf.Caller{UID: mihf.Some(uint32(0))})
	if err != nil {
		t.Fatal(err)
	}
	for n := range c.MaxFlows + 1 {
		_, err = at.Register(mihf.FlowSpec{ID: mihf.FlowID(fmt.Sprintf("%026d", n)), Link: "wifi-00000001"})
		if (n == c.MaxFlows) != errors.Is(err, mihf.ErrLimit) {
			t.Fatalf("flow %d of %d: error %v", n, c.MaxFlows, err)
		}
	}
	at.Close()
	synctest.Wait()
	subscribe := func(uid uint32) (n int) {
		for ; ; n++ {
			if _, err := b.Subscribe(t.Context(), mihf.Caller{UID: mihf.Some(uid)}, mihf.SubscribeRequest{}); err != nil {
				if !errors.Is(err, mihf.ErrLimit) {
					t.Error(err)
				}
				return n
			}
		}
	}
	for uid := range c.MaxSubscribers / c.MaxSubscribersPerUser {
		if n := subscribe(uint32(uid)); n != c.MaxSubscribersPerUser {
			t.Fatalf("%d subscribers of a user, want %d", n, c.MaxSubscribersPerUser)
		}
	}
	if n := subscribe(99); n != 0 {
		t.Errorf("%d subscribers beyond %d", n, c.MaxSubscribers)
	}
	stop()
}

// TestEveryValueArrives: a field of a section and the field of the same name that it is for
// have the same value, whatever it is, and no field is left over.
func TestEveryValueArrives(t *testing.T) {
	c := config.Defaults()
	n := int64(0)
	fill(reflect.ValueOf(&c).Elem(), &n)
	e := engineConfig(&c)
	b := brokerConfig(&c, Options{}, e, Watch{})
	same(t, c.Link, e.Link, "RouteHold", "AddressHold")
	same(t, c.Hint, e.Hint)
	same(t, c.Broker, b)
	if e.RouteHold != c.Link.RouteHold || e.AddressHold != c.Link.AddressHold || e.EvaluateEvery != c.Predictor.EvaluateEvery || string(e.Node) != c.Node.Name {
		t.Errorf("engine %+v", e)
	}
	r := rtnlOptions(&c.Sensors.Rtnl, Options{})
	if r.Settle != c.Sensors.Rtnl.Settle || r.Reconcile != c.Sensors.Rtnl.Reconcile || r.BufferBytes != c.Sensors.Rtnl.BufferBytes ||
		r.Mark != uint32(c.Sensors.Rtnl.Mark) || r.UID != mihf.Some(uint32(c.Sensors.Rtnl.UID)) {
		t.Errorf("rtnl %+v", r)
	}
	w, wifi := nl80211Options(&c.Sensors.NL80211, Options{}, func(int) (mihf.LinkID, bool) { return "x", true }), &c.Sensors.NL80211
	if w.Near != float64(wifi.NearDBm) || w.PollFar != wifi.PollFar || w.PollNear != wifi.PollNear || w.SetCQM != wifi.SetCQM ||
		w.BufferBytes != wifi.BufferBytes || w.Link == nil {
		t.Errorf("nl80211 %+v", w)
	}
	m, wwan := modemOptions(&c.Sensors.Modem, Options{}, func(int) (mihf.LinkID, bool) { return "x", true }), &c.Sensors.Modem
	address, err := m.Address()
	if m.Poll != wwan.Poll || m.ThresholdDB != wwan.ThresholdDB || !slices.Equal(m.NeverPoll, wwan.NeverPoll) || m.NoCells == wwan.Cells || m.Link == nil ||
		err != nil || address != wwan.Bus {
		t.Errorf("modem %+v at %s, %v", m, address, err)
	}
	if m := modemOptions(&config.Modem{}, Options{}, nil); m.Poll >= 0 {
		t.Errorf("poll 0 is %v for the sensor, want below 0: never", m.Poll)
	}
	addresses := func() map[netip.Addr]mihf.LinkID { return nil }
	d := sockDiagOptions(&c.Sensors.SockDiag, Options{}, func(int) (mihf.LinkID, bool) { return "x", true }, addresses)
	if d.Poll != c.Sensors.SockDiag.Poll || d.RegisteredOnly || d.Link == nil || d.Addresses == nil {
		t.Errorf("sock_diag %+v", d)
	}
	if d := sockDiagOptions(&config.SockDiag{Flows: config.FlowsRegistered}, Options{}, nil, nil); !d.RegisteredOnly {
		t.Error("all flows are read although only registered ones are to be")
	}
	if r := rtnlOptions(&config.Rtnl{UID: -1}, Options{}); r.UID.Known() {
		t.Errorf("the kernel is asked as user %v, want as the daemon's own", r.UID)
	}
	if r := rtnlOptions(&config.Rtnl{}, Options{}); r.Settle >= 0 {
		t.Errorf("settle 0 is %v for the sensor, want below 0: at once", r.Settle)
	}
}

// fill gives every field a value of its own.
func fill(v reflect.Value, n *int64) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, n)
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(*n)
	case reflect.Uint32:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	case reflect.String:
		v.SetString(fmt.Sprint(*n))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	default: // what is only on or off
	}
}

// same checks that each field of a section but those named is in part too.
func same(t *testing.T, section, part any, but ...string) {
	t.Helper()
	s, p := reflect.ValueOf(section), reflect.ValueOf(part)
	for i := range s.NumField() {
		name := s.Type().Field(i).Name
		f := p.FieldByName(name)
		switch {
		case slices.Contains(but, name):
		case !f.IsValid():
			t.Errorf("%T has no field %s", part, name)
		case !f.Equal(s.Field(i)):
			t.Errorf("%T.%s is %v, configured %v", part, name, f, s.Field(i))
		}
	}
}

func TestNewPredictor(t *testing.T) {
	f, err := NewPredictor("level-slope")
	if err != nil || f("a") == f("a") {
		t.Errorf("error %v; each link has its own predictor", err)
	}
	if f, err := NewPredictor(config.NoPredictor); f != nil || err != nil {
		t.Errorf("none: %v", err)
	}
	if _, err := NewPredictor("magic"); err == nil {
		t.Error("no error for a method that does not exist")
	}
	if len(Known().Predictors) != len(Methods()) {
		t.Errorf("known: %v", Known())
	}
}

func TestNewBootID(t *testing.T) {
	if a, b := NewBootID(), NewBootID(); a == 0 || a == b {
		t.Errorf("boot ids %v and %v", a, b)
	}
}

func TestNodeName(t *testing.T) {
	if n := nodeName(&config.Node{Name: "bus-12"}); n != "bus-12" {
		t.Errorf("node %q", n)
	}
	if n := nodeName(&config.Node{}); n == "" {
		t.Error("no name for the host")
	}
}

// start serves tasks, and returns what ends them and checks that they did so in order.
func start(t *testing.T, tasks ...daemon.Task) (stop func()) {
	t.Helper()
	quit := make(chan struct{})
	ended := make(chan error, 1)
	all := append([]daemon.Task{untilClosed(quit)}, tasks...)
	go func() { ended <- serve(t, quit, all) }()
	for _, task := range tasks {
		<-task.Ready()
	}
	return func() {
		close(quit)
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("the tasks did not end")
		}
	}
}
