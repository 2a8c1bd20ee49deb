package mihnats

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/natsfront"
	mihv1 "mihf.dev/proto/mih/v1"
)

// BenchmarkFreeze compares the way of a Freeze, from the observation that makes it due to
// the client's Next, with that of a bare message of the same size from publish to subscriber,
// over the same kind of connection. Both alternate in one process. The metrics are medians
// and their ratio.
func BenchmarkFreeze(b *testing.B) {
	b.Run("in process", func(b *testing.B) { benchmarkFreeze(b, "") })
	b.Run("loopback", func(b *testing.B) { benchmarkFreeze(b, "127.0.0.1:0") })
}

func benchmarkFreeze(b *testing.B, listen string) {
	w := newBed(b)
	broker, _ := w.broker(1, node)
	f, _ := w.serve(natsfront.Options{Broker: broker, Embedded: &natsfront.Embedded{
		Listen: listen, Users: []natsfront.User{{Name: user, Secret: secret}},
	}})
	o := Options{User: user, Password: secret, Node: node}
	url := ""
	if listen == "" {
		o.InProcess = f
	} else {
		url = "nats://" + f.Addr().String()
	}
	at, err := w.dial(url, o).Attach(b.Context())
	w.must(err)
	defer at.Close()
	link := func(up bool) mihf.Observation {
		facts := &mihf.LinkFacts{Index: 3, MTUBytes: 1500, AdminUp: true, Carrier: up, Oper: mihf.OperDown}
		if up {
			facts.Oper = mihf.OperUp
			facts.Addresses = []mihf.Address{{Prefix: netip.MustParsePrefix("192.0.2.2/24")}}
			facts.Defaults = []mihf.Route{{Gateway: netip.MustParseAddr("192.0.2.1")}}
		}
		return mihf.Observation{At: broker.Now(), Link: "wifi-00000001", Kind: mihf.ObsLink, Facts: facts}
	}
	const warm = 20
	_, err = at.Register(mihf.FlowSpec{Link: "wifi-00000001", LateFreeze: true, Hints: mihf.Hints(mihf.HintFreeze, mihf.HintUnfreeze)})
	w.must(err)
	send := bareFreeze(w, listen != "")
	ours, bare := make([]time.Duration, 0, b.N), make([]time.Duration, 0, b.N)
	buf := make([]mihf.Delivery, 1)
	next := func(k mihf.HintKind) {
		if _, err := at.Next(buf); err != nil || buf[0].Hint.Kind != k {
			b.Fatal(buf[0].Hint.Kind, err)
		}
	}
	up := link(true)
	broker.Observe(&up)
	for i := range b.N + warm {
		time.Sleep(200 * time.Microsecond) // both begin at rest
		down := link(false)
		began := time.Now()
		broker.Observe(&down)
		next(mihf.HintFreeze)
		took := time.Since(began)
		up := link(true)
		broker.Observe(&up)
		next(mihf.HintUnfreeze)
		time.Sleep(200 * time.Microsecond)
		bareTook := send()
		if i >= warm {
			ours, bare = append(ours, took), append(bare, bareTook)
		}
	}
	p50 := func(d []time.Duration) float64 { slices.Sort(d); return float64(d[len(d)/2].Nanoseconds()) }
	b.ReportMetric(p50(ours), "ns/ours-p50")
	b.ReportMetric(p50(bare), "ns/bare-p50")
	b.ReportMetric(p50(ours)/p50(bare), "ours/bare")
	b.ReportMetric(0, "ns/op")
}

// bareFreeze returns what sends one message through a bare server and says how long it took.
func bareFreeze(w *bed, listen bool) func() time.Duration {
	w.Helper()
	data, err := proto.Marshal(&mihv1.Hint{
		Flow: "01M8QC2T73B2MWC057237QX72H", Link: "wifi-00000001", Epoch: 7, BootId: "0000b007", Sequence: 9,
		Kind: &mihv1.Hint_Freeze{Freeze: &mihv1.Freeze{Reason: 2}},
	})
	w.must(err)
	so := &server.Options{DontListen: !listen, Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true}
	s, err := server.NewServer(so)
	w.must(err)
	s.Start()
	w.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	dial := func(inside bool) *nats.Conn {
		var o []nats.Option
		url := s.ClientURL()
		if inside {
			o, url = append(o, nats.InProcessServer(s)), ""
		}
		c, err := nats.Connect(url, o...)
		w.must(err)
		w.Cleanup(c.Close)
		return c
	}
	pub, sub := dial(true), dial(!listen) // as the daemon and its client are
	ch := make(chan *nats.Msg, 16)
	_, err = sub.ChanSubscribe("_INBOX.alice.session", ch)
	w.must(err)
	w.must(sub.Flush())
	return func() time.Duration {
		began := time.Now()
		w.must(pub.Publish("_INBOX.alice.session", data))
		<-ch
		return time.Since(began)
	}
}

// BenchmarkSubscribers is how a thousand subscribers at ten events a second fare: what each
// missed, and how late the last had an event.
func BenchmarkSubscribers(b *testing.B) {
	const many, rate = 1000, 10
	w := newBed(b)
	w.ctx = b.Context()
	broker, _ := w.broker(1, node)
	f, _ := w.serve(natsfront.Options{Broker: broker, Embedded: &natsfront.Embedded{
		Listen: "127.0.0.1:0", Users: []natsfront.User{{Name: user, Secret: secret}},
	}})
	missed, late := make(chan int, many), make(chan time.Duration, many)
	for range many {
		c := w.dial("nats://"+f.Addr().String(), Options{User: user, Password: secret, Node: node, Timeout: time.Minute})
		feed, err := c.Follow(b.Context(), mihf.SubscribeRequest{Kinds: mihf.Kinds(mihf.ResumedFromSuspend)})
		w.must(err)
		go func() {
			defer feed.Close()
			next, holes, worst := 0, 0, time.Duration(0)
			buf := make([]mihf.Delivery, 1)
			for next < b.N {
				if _, err := feed.Next(buf); err != nil {
					break
				}
				if buf[0].Kind != mihf.DeliverEvent {
					continue
				}
				if n := int(buf[0].Event.Gap) - 1; n != next {
					holes++
				}
				next = int(buf[0].Event.Gap)
				worst = max(worst, broker.Now().Sub(buf[0].Event.At))
			}
			missed <- holes + b.N - next
			late <- worst
		}()
	}
	for n := range b.N {
		time.Sleep(time.Second / rate)
		mark(broker, n+1)
	}
	total, worst := 0, time.Duration(0)
	for range many {
		total += <-missed
		worst = max(worst, <-late)
	}
	b.ReportMetric(float64(total), "missed")
	b.ReportMetric(float64(worst.Milliseconds()), "worst-ms")
	if total > 0 {
		b.Error(fmt.Sprint(total, " missed"))
	}
}
