package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"mihf.dev/clients/mihgrpc"
	"mihf.dev/mihf"
	"mihf.dev/mihf/front/grpcfront"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
)

// Front is a Freeze that is due, on its way through a front to a client on a unix socket,
// one each millisecond: from Observe of the loss to the hint in the client's hands.
type Front struct {
	OursP50  float64 `json:"ours_p50_us"`
	BareP50  float64 `json:"bare_p50_us"` // the same message through a bare stream, from a channel to its handler
	OursP99  float64 `json:"ours_p99_us"`
	BareP99  float64 `json:"bare_p99_us"`
	RatioP50 float64 `json:"ratio_p50"`
	Bytes    int     `json:"message_bytes"`
	Messages int     `json:"messages_per_round"`
	Rounds   int     `json:"rounds"`
	Missed   int     `json:"missed"`
}

const messageEvery = time.Millisecond

// exchange is one way to bring messages to a client.
type exchange interface {
	// send sends a message, whose time was noted before.
	send() error
	// between is called half-way between two messages.
	between()
	// settle waits until the client has what was sent in the round, and returns how long
	// each took.
	settle(sent []int64) []int64
	close() error
}

func overGRPC(ctx context.Context, o *Options) (f *Front, err error) {
	dir, err := os.MkdirTemp("", "mihf-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	f = &Front{Bytes: proto.Size(freezeMessage()), Messages: o.Messages, Rounds: o.Rounds}
	bare, err := newBare(ctx, filepath.Join(dir, "bare.sock"), freezeMessage())
	if err != nil {
		return nil, fmt.Errorf("bare stream: %w", err)
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	ours, err := newFreezes(ctx, filepath.Join(dir, "mihfd.sock"))
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	return f, f.measure(ctx, o, bare, ours)
}

// measure lets bare and ours alternate.
func (f *Front) measure(ctx context.Context, o *Options, bare, ours exchange) error {
	var p50, p99 [2][]float64
	for _, x := range []exchange{bare, ours} { // not counted: everything is made once
		if _, err := exchanged(ctx, x, 200); err != nil {
			return err
		}
	}
	for r := range o.Rounds {
		for k := range 2 {
			k := (k + r) % 2
			took, err := exchanged(ctx, []exchange{bare, ours}[k], o.Messages)
			if err != nil {
				return err
			}
			f.Missed += o.Messages - len(took)
			p50[k], p99[k] = append(p50[k], quantile(took, 0.5)), append(p99[k], quantile(took, 0.99))
		}
	}
	f.BareP50, f.OursP50 = round(median(p50[0]), 1), round(median(p50[1]), 1)
	f.BareP99, f.OursP99 = round(median(p99[0]), 1), round(median(p99[1]), 1)
	f.RatioP50 = round(ratios(p50[1], p50[0]), 3)
	return nil
}

// exchanged does one round.
func exchanged(ctx context.Context, x exchange, messages int) ([]int64, error) {
	sent := make([]int64, messages)
	var failed error
	err := pace(ctx, 2*messages, messageEvery/2, func(i int) {
		if i%2 == 1 {
			x.between()
			return
		}
		sent[i/2] = stamp()
		if err := x.send(); err != nil && failed == nil {
			failed = err
		}
	})
	if err == nil {
		err = failed
	}
	return x.settle(sent), err
}

// freezeMessage is what one Freeze looks like on the wire.
func freezeMessage() *mihv1.AttachResponse {
	h := mihf.Hint{
		Sequence: 10_000, Boot: 1, Flow: "01JDZ3M5Y6Q8W9X0Z1A2B3C4D5", Link: wlan, Epoch: 1000, Kind: mihf.HintFreeze, At: 1,
		Freeze: mihf.Freeze{Lease: 3 * time.Second, Reason: mihf.FreezeLinkDown},
	}
	return &mihv1.AttachResponse{Previous: 9_998, Response: &mihv1.AttachResponse_Hint{Hint: conv.Encoder{Now: 1, Node: "bench"}.Hint(&h)}}
}

// arrivals are the times at which a client had the messages of the round.
type arrivals struct {
	mu   sync.Mutex // guards at
	at   []int64
	more chan struct{} // full after an arrival
}

func newArrivals() *arrivals { return &arrivals{more: make(chan struct{}, 1)} }

func (a *arrivals) add() {
	now := stamp()
	a.mu.Lock()
	a.at = append(a.at, now)
	a.mu.Unlock()
	select {
	case a.more <- struct{}{}:
	default:
	}
}

// settle waits for as many arrivals as were sent, at most a second, and starts anew.
func (a *arrivals) settle(sent []int64) []int64 {
	limit := time.After(time.Second)
	for {
		a.mu.Lock()
		if n := len(a.at); n >= len(sent) {
			took := make([]int64, len(sent))
			for i := range took {
				took[i] = a.at[i] - sent[i]
			}
			a.at = a.at[:0]
			a.mu.Unlock()
			return took
		}
		a.mu.Unlock()
		select {
		case <-a.more:
		case <-limit:
			return nil // which one is missing isn't known, so none counts
		}
	}
}

// freezes is a broker with its gRPC front, and a client whose flow is frozen at each loss of
// its link.
type freezes struct {
	*arrivals
	b          *started
	client     *mihgrpc.Client
	at         mihf.Attachment
	stop       context.CancelFunc
	tasks      sync.WaitGroup
	lost, back mihf.Observation
}

func newFreezes(ctx context.Context, socket string) (x *freezes, err error) {
	x = &freezes{arrivals: newArrivals(), lost: carrier(false), back: carrier(true)}
	ctx, x.stop = context.WithCancel(ctx)
	if x.b, err = start(ctx); err != nil {
		x.stop()
		return nil, err
	}
	if err = x.serve(ctx, socket); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (x *freezes) serve(ctx context.Context, socket string) error {
	err := serve(ctx, x.b, socket, &x.tasks)
	if err != nil {
		return err
	}
	if x.client, err = mihgrpc.Dial("unix://"+socket, mihgrpc.Options{}); err != nil {
		return err
	}
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

// serve serves a broker on a unix socket, until ctx ends.
func serve(ctx context.Context, b *started, socket string, tasks *sync.WaitGroup) error {
	ln, err := grpcfront.ListenUnix(socket, 0o600, "")
	if err != nil {
		return err
	}
	front, err := grpcfront.New(grpcfront.Options{Broker: b, Listeners: []net.Listener{ln}})
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	tasks.Go(func() { _ = front.Run(ctx) }) // what it says shows at the client
	return nil
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
