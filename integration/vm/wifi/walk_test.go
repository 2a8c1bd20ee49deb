package wifi

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"mihf.dev/clients/attach"
	"mihf.dev/clients/mihgrpc"
	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// daemon starts a real mihfd with the sensors' defaults, and follows it over gRPC.
func (b *bed) daemon() *follower {
	b.t.Helper()
	dir := b.t.TempDir()
	socket := filepath.Join(dir, "mihfd.sock")
	config := b.file("mihfd.toml", fmt.Sprintf("[grpc]\nsocket = %q\n[dbus]\nbus = \"none\"\n", socket))
	b.t.Setenv("STATE_DIRECTORY", filepath.Join(dir, "state"))
	b.program("mihfd", "-config", config)
	client, err := mihgrpc.Dial("unix://"+socket, mihgrpc.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := client.Close(); err != nil {
			b.t.Error(err)
		}
	})
	f := &follower{t: b.t, client: client, events: make(chan moment, plenty)}
	b.eventually("the station in the daemon's snapshot", func() bool {
		f.link = f.linkOf(ifname(station))
		return f.link != ""
	})
	f.follow()
	return f
}

// plenty is more events than a test lets happen.
const plenty = 4096

// A moment is an event and when the client had it.
type moment struct {
	mihf.Event
	had mihf.Time
}

// A follower hands on the events of the station that the daemon publishes.
type follower struct {
	t      *testing.T
	client *mihgrpc.Client
	link   mihf.LinkID // the station's
	events chan moment
}

// follow hands on what the daemon sends, until the test ends.
func (f *follower) follow() {
	t := f.t
	t.Helper()
	feed, err := f.client.Follow(t.Context(), mihf.SubscribeRequest{Links: []mihf.LinkID{f.link}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { feed.Close(); <-done })
	go func() {
		defer close(done)
		buf := make([]mihf.Delivery, 16)
		for {
			n, err := feed.Next(buf)
			for _, d := range buf[:n] {
				if d.Kind != mihf.DeliverEvent {
					continue
				}
				select {
				case f.events <- moment{d.Event, clock.Boot().Now()}:
				default:
					t.Error("more events than the test takes")
				}
			}
			if err != nil {
				return // the test ends
			}
		}
	}()
}

// linkOf is the link of an interface; "": the daemon does not answer yet, or knows none.
func (f *follower) linkOf(name string) mihf.LinkID {
	s, err := f.client.Snapshot(f.t.Context())
	if err != nil {
		return ""
	}
	for _, l := range s.Links {
		if l.Facts != nil && l.Facts.Name == name {
			return l.Link
		}
	}
	return ""
}

// event waits for the next event of a kind. Before it none of those in never may come.
func (f *follower) event(k mihf.Kind, never ...mihf.Kind) moment {
	f.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case e := <-f.events:
			if e.Kind == k {
				return e
			}
			for _, n := range never {
				if e.Kind == n {
					f.t.Fatalf("%v came before %v", n, k)
				}
			}
		case <-timeout:
			f.t.Fatalf("%v did not come", k)
		}
	}
}

// A freezable is a transport that notes when it is frozen first.
type freezable struct {
	rtt    time.Duration
	freeze chan mihf.Time
}

func (x *freezable) RTT() time.Duration { return x.rtt }
func (x *freezable) Freeze(mihf.Freeze) {
	select {
	case x.freeze <- clock.Boot().Now():
	default: // renewed
	}
}
func (x *freezable) Unfreeze(mihf.Unfreeze)     {}
func (x *freezable) Characteristics(_ mihf.LCI) {}

// attach registers a flow on a link until the test ends.
func (f *follower) attach(link mihf.LinkID, rtt time.Duration) *freezable {
	f.t.Helper()
	x := &freezable{rtt: rtt, freeze: make(chan mihf.Time, 1)}
	flow := attach.New(x, f.client, attach.Options{Spec: mihf.FlowSpec{Link: link}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- flow.Run(ctx) }()
	f.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
	})
	select {
	case <-flow.Ready():
	case <-time.After(patience):
		f.t.Fatal("the flow is not registered")
	}
	return x
}

// A station attaches, walks away and is lost, seen by a client of a real mihfd: Link_Up names
// the access point, the signal is read as it is, Link_Going_Down and the flow's Freeze come
// before the last data frame, and Link_Down behind it.
func TestWalk(t *testing.T) {
	b := start(t)
	f := b.daemon()
	b.Join(station, ap1, medium.Steady(-50))
	b.accessPoint(ap1, 1)
	b.supplicant()

	poa, err := net.InterfaceByName(ifname(ap1))
	if err != nil {
		t.Fatal(err)
	}
	up := f.event(mihf.LinkUp, mihf.LinkDown)
	if up.Up.PoA != mihf.PoA(poa.HardwareAddr.String()) || !bytes.Equal(up.Up.SSID, []byte("mihf")) {
		t.Errorf("Link_Up at %q of %q", up.Up.PoA, up.Up.SSID)
	}
	b.wantReading(f, f.link, -60)
	b.wantReading(f, f.link, -50)

	const rtt = 100 * time.Millisecond
	flow := f.attach(f.link, rtt)
	stop := b.send(ap1, station, 10*time.Millisecond)
	b.eventually("data", func() bool { return b.Truth(ap1, station).Data > 20 })
	b.SetLoss(medium.SNR{})
	b.Join(station, ap1, medium.Fade(-50, -94, 4, true))

	going := f.event(mihf.LinkGoingDown, mihf.LinkDown)
	down := f.event(mihf.LinkDown, mihf.LinkHandoverComplete)
	stop()
	last := b.Truth(ap1, station).LastData
	var frozen mihf.Time
	select {
	case frozen = <-flow.freeze:
	default:
		t.Fatal("the flow was not frozen")
	}
	t.Logf("before the last data frame: Link_Going_Down %v, Freeze %v; behind it: Link_Down %v",
		last.Sub(going.had), last.Sub(frozen), down.had.Sub(last))
	if going.had >= last || frozen >= last || down.had <= last {
		t.Error("Link_Going_Down and Freeze come before the last data frame, and Link_Down behind it")
	}
	if down.Down.PoA != up.Up.PoA {
		t.Errorf("Link_Down at %q", down.Down.PoA)
	}
}

// wantReading sets a signal and waits until the daemon has read it.
func (b *bed) wantReading(f *follower, link mihf.LinkID, dBm int) {
	b.t.Helper()
	b.Join(station, ap1, medium.Steady(dBm))
	begin := time.Now()
	b.eventually("the daemon's reading", func() bool {
		s, err := f.client.Parameters(b.t.Context(), link)
		if err != nil {
			b.t.Fatal(err)
		}
		rssi, known := s.Values.Get(mihf.ParamRSSI)
		return known && rssi == float64(dBm)
	})
	b.t.Logf("%d dBm was read after %v", dBm, time.Since(begin))
}
