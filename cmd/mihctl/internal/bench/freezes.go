package bench

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
)

// freezes is a broker with a front, and a client whose flow is frozen at each loss of its
// link.
type freezes struct {
	*arrivals
	b          *started
	client     clients.Client
	at         mihf.Attachment
	stop       context.CancelFunc
	tasks      sync.WaitGroup
	lost, back mihf.Observation
}

func newFreezes(ctx context.Context, join func(context.Context, *started, *sync.WaitGroup) (clients.Client, error)) (x *freezes, err error) {
	x = &freezes{arrivals: newArrivals(), lost: carrier(false), back: carrier(true)}
	ctx, x.stop = context.WithCancel(ctx)
	if x.b, err = start(ctx); err != nil {
		x.stop()
		return nil, err
	}
	if x.client, err = join(ctx, x.b, &x.tasks); err == nil {
		err = x.attach(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (x *freezes) attach(ctx context.Context) (err error) {
	if x.at, err = x.client.Attach(ctx); err != nil {
		return err
	}
	x.observe(&x.back)
	if _, err = x.at.Register(late); err != nil {
		return err
	}
	x.tasks.Go(x.receive)
	return nil
}

// late is a flow that is frozen at each loss of its link.
var late = mihf.FlowSpec{Link: wlan, RTT: 50 * time.Millisecond, LateFreeze: true, Hints: mihf.Hints(mihf.HintFreeze, mihf.HintUnfreeze)}

// lateFreeze is the Freeze of that flow, as the fronts send it.
func lateFreeze() *mihv1.Hint {
	h := mihf.Hint{
		Sequence: 10_000, Boot: 1, Flow: "01JDZ3M5Y6Q8W9X0Z1A2B3C4D5", Link: wlan, Epoch: 1000, Kind: mihf.HintFreeze, At: 1,
		Freeze: mihf.Freeze{Lease: 3 * time.Second, Reason: mihf.FreezeLinkDown},
	}
	return conv.Encoder{Now: 1, Node: "bench"}.Hint(&h)
}

// receive notes each Freeze.
func (x *freezes) receive() {
	buf := make([]mihf.Delivery, 4)
	for {
		n, err := x.at.Next(buf)
		if err != nil {
			return // closed, or what is missing is counted
		}
		for i := range buf[:n] {
			if buf[i].Hint.Kind == mihf.HintFreeze {
				x.add()
			}
		}
	}
}

func (x *freezes) observe(o *mihf.Observation) {
	o.At = x.b.Now()
	x.b.Observe(o)
}

// send lets the link be lost, which freezes the flow.
func (x *freezes) send() error {
	x.observe(&x.lost)
	return nil
}

// between lets it come back.
func (x *freezes) between() { x.observe(&x.back) }

// carrier is what the kernel says of a link whose carrier came or went.
func carrier(up bool) mihf.Observation {
	f := &mihf.LinkFacts{
		Name: "wlan0", Index: 3, MTUBytes: 1500, AdminUp: true, Carrier: up, Oper: mihf.OperDown,
		Addresses: []mihf.Address{{Prefix: netip.MustParsePrefix("192.0.2.2/24")}},
		Defaults:  []mihf.Route{{Gateway: netip.MustParseAddr("192.0.2.1"), Metric: 600}},
	}
	if up {
		f.Oper = mihf.OperUp
	}
	return mihf.Observation{Sensor: "bench", Link: wlan, Kind: mihf.ObsLink, Facts: f}
}

func (x *freezes) close() error {
	var err error
	if x.client != nil {
		err = x.client.Close()
	}
	x.stop()
	x.b.end()
	x.tasks.Wait()
	return err
}
