package front

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"mihf.dev/clients/mihdbus"
	"mihf.dev/integration/daemons"
	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/front/dbusfront"
	"mihf.dev/proto/conv"
	"mihf.dev/proto/dbusapi"
	"mihf.dev/proto/variant"
)

// BenchmarkFreezeOverDBus compares a Freeze that is due, from the observation of the loss to
// the client's hands, with a bare signal of godbus that has the same body, between two
// connections to the same bus. Both alternate. It reports the medians of the rounds' p50 and
// of their ratio.
func BenchmarkFreezeOverDBus(b *testing.B) {
	bus := daemons.Bus(b, daemons.BusConfig{})
	bare, ours := newBareSignals(b, bus), newFreezes(b, bus)
	const rounds, each = 9, 300
	bare.round(50)
	ours.round(50)
	for b.Loop() {
		var p50 [2][]float64
		var ratio []float64
		for r := range rounds {
			var now [2]float64
			for k := range 2 {
				k := (k + r) % 2
				now[k] = []*exchange{bare, ours}[k].round(each)
				p50[k] = append(p50[k], now[k])
			}
			ratio = append(ratio, now[1]/now[0])
		}
		b.ReportMetric(middle(p50[0]), "bare-p50-us")
		b.ReportMetric(middle(p50[1]), "ours-p50-us")
		b.ReportMetric(middle(ratio), "ratio")
		b.ReportMetric(0, "ns/op")
	}
}

func middle(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// exchange is one way to bring a message to a client.
type exchange struct {
	send, between func()
	arrived       chan time.Time
}

// round sends messages, one each millisecond, and returns their p50 in microseconds.
func (x *exchange) round(messages int) float64 {
	var took []float64
	for range messages {
		time.Sleep(500 * time.Microsecond)
		begun := time.Now()
		x.send()
		took = append(took, float64((<-x.arrived).Sub(begun).Microseconds()))
		time.Sleep(500 * time.Microsecond)
		x.between()
	}
	return middle(took)
}

func newBareSignals(b *testing.B, bus *daemons.MessageBus) *exchange {
	b.Helper()
	from, to := daemons.DialBus(b, bus), daemons.DialBus(b, bus, dbus.WithSignalHandler(dbus.NewSequentialSignalHandler()))
	heard := make(chan *dbus.Signal, 16)
	to.Signal(heard)
	x := &exchange{arrived: make(chan time.Time, 1), between: func() {}}
	go func() { // ends with the connection
		for s := range heard {
			if s.Name == dbusapi.FlowInterface+".Freeze" {
				x.arrived <- time.Now()
			}
		}
	}()
	h := mihf.Hint{
		Sequence: 10_000, Boot: 1, Flow: "01JDZ3M5Y6Q8W9X0Z1A2B3C4D5", Link: wlan, Epoch: 1000, Kind: mihf.HintFreeze, At: 1,
		Freeze: mihf.Freeze{Lease: 3 * time.Second, Reason: mihf.FreezeLinkDown},
	}
	body := []any{uint64(9_998), int64(0), variant.Encode(conv.Encoder{Now: 1}.Hint(&h))}
	x.send = func() {
		from.Send(&dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldDestination: dbus.MakeVariant(to.Names()[0]), dbus.FieldPath: dbus.MakeVariant(dbusapi.FlowPath(h.Flow)),
			dbus.FieldInterface: dbus.MakeVariant(dbusapi.FlowInterface), dbus.FieldMember: dbus.MakeVariant("Freeze"),
			dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...)),
		}, Body: body}, nil)
	}
	return x
}

func newFreezes(b *testing.B, bus *daemons.MessageBus) *exchange {
	b.Helper()
	cfg := broker.Config{Engine: engine.Defaults(), Access: access.New(0, access.Default)}
	cfg.Engine.Boot, cfg.Engine.NewPredictor = boot, nil
	br := broker.New(cfg)
	s, err := dbusfront.New(dbusfront.Options{Broker: br, Address: func() (string, error) { return bus.Address, nil }})
	if err != nil {
		b.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = br.Run(b.Context()) })
	running.Go(func() { _ = s.Run(b.Context()) })
	b.Cleanup(running.Wait)
	<-s.Ready()
	c, err := mihdbus.Dial(bus.Address, mihdbus.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	observe := func(up bool) {
		o := facts(up)
		o.At, o.Link, o.Sensor = br.Now(), wlan, "bench"
		br.Observe(&o)
	}
	observe(true)
	at, err := c.Attach(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	late := mihf.FlowSpec{Link: wlan, RTT: 50 * time.Millisecond, LateFreeze: true, Hints: mihf.Hints(mihf.HintFreeze, mihf.HintUnfreeze)}
	if _, err := at.Register(late); err != nil {
		b.Fatal(err)
	}
	x := &exchange{arrived: make(chan time.Time, 1), send: func() { observe(false) }, between: func() { observe(true) }}
	running.Go(func() {
		buf := make([]mihf.Delivery, 4)
		for {
			n, err := at.Next(buf)
			if err != nil {
				return
			}
			for i := range buf[:n] {
				if buf[i].Hint.Kind == mihf.HintFreeze {
					x.arrived <- time.Now()
				}
			}
		}
	})
	return x
}
