package broker_test

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/clock"
	"mihf.dev/mihf/engine"
)

const wlan = mihf.LinkID("wifi-00000001")

// certain is a predictor that says what the newest RSSI says: at or below -80 dBm the
// link breaks within a second.
type certain struct{ low bool }

func (c *certain) Observe(_ mihf.Time, o *mihf.Observation) {
	if v, ok := o.Values.Get(mihf.ParamRSSI); ok {
		c.low = v <= -80
	}
}

func (c *certain) Forecast(now mihf.Time, f *mihf.Forecast) bool {
	*f = mihf.Forecast{At: now, Interval: 100 * time.Millisecond}
	if c.low {
		f.Loss.Set(func(s float64) float64 { return min(s, 1) * 0.95 })
	}
	return true
}

func start(t *testing.T) (*broker.Broker, func(*mihf.Observation)) {
	cfg := engine.Defaults()
	cfg.Boot, cfg.Node = 1, "n"
	cfg.NewPredictor = func(mihf.LinkID) engine.Predictor { return &certain{} }
	b := broker.New(broker.Config{Engine: cfg, Clock: clock.Process()})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return b, func(o *mihf.Observation) {
		o.At, o.Link = b.Now(), wlan
		b.Observe(o)
		synctest.Wait()
	}
}

func facts(up bool) *mihf.Observation {
	f := &mihf.LinkFacts{Name: "wlan0", Index: 3, MTUBytes: 1500, AdminUp: true, Carrier: up, Oper: mihf.OperDown}
	if up {
		f.Oper = mihf.OperUp
		f.Addresses = []mihf.Address{{Prefix: netip.MustParsePrefix("192.0.2.2/24")}}
		f.Defaults = []mihf.Route{{Gateway: netip.MustParseAddr("192.0.2.1"), Metric: 600}}
	}
	return &mihf.Observation{Kind: mihf.ObsLink, Facts: f}
}

func rssi(v float64) *mihf.Observation {
	o := &mihf.Observation{Kind: mihf.ObsRadio}
	o.Values.Set(mihf.ParamRSSI, v)
	return o
}

func TestWalkThroughFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, give := start(t)
		me := mihf.Caller{Front: "inproc", UID: mihf.Some(uint32(1000))}
		feed, err := b.Subscribe(t.Context(), me, mihf.SubscribeRequest{Hints: true})
		if err != nil {
			t.Fatal(err)
		}
		defer feed.Close()
		at, err := b.Attach(t.Context(), me)
		if err != nil {
			t.Fatal(err)
		}
		defer at.Close()
		give(facts(true))
		if _, err := at.Register(mihf.FlowSpec{Link: wlan, RTT: 100 * time.Millisecond, LateFreeze: true}); err != nil {
			t.Fatal(err)
		}
		give(rssi(-60))
		give(rssi(-85))
		time.Sleep(600 * time.Millisecond)
		give(facts(false))
		time.Sleep(4 * time.Second)
		give(facts(true))
		synctest.Wait()
		var got []string
		buf := make([]mihf.Delivery, 64)
		n, err := feed.Next(buf)
		for err == nil && len(got)+n < 15 {
			for _, d := range buf[:n] {
				got = append(got, describe(&d))
			}
			n, err = feed.Next(buf)
		}
		for _, d := range buf[:n] {
			got = append(got, describe(&d))
		}
		for _, g := range got {
			t.Log(g)
		}
	})
}

func describe(d *mihf.Delivery) string {
	switch d.Kind {
	case mihf.DeliverEvent:
		return d.Event.At.String() + " " + d.Event.Kind.String() + " " + d.Event.Prediction.ID.String()
	case mihf.DeliverHint:
		return d.Hint.At.String() + " hint " + d.Hint.Kind.String() + " " + d.Hint.Prediction.String()
	default:
		return "snapshot or gap"
	}
}
