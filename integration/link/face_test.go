package link_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mihf.dev/integration/link"
	"mihf.dev/integration/netns"
	"mihf.dev/mihf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type runner interface {
	Run(ctx context.Context) error
}

// run runs a face for as long as the test lasts.
func run(t *testing.T, r runner) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("Run:", err)
		}
	})
}

func listen(t *testing.T) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

func local(c net.PacketConn) netip.AddrPort { return c.LocalAddr().(*net.UDPAddr).AddrPort() }

func dial(t *testing.T, to netip.AddrPort) *net.UDPConn {
	t.Helper()
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

// echo answers whatever comes until the socket closes.
func echo(c *net.UDPConn) {
	buf := make([]byte, 2000)
	for {
		n, from, err := c.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		_, _ = c.WriteToUDPAddrPort(buf[:n], from)
	}
}

// Each client's packets reach the server from a socket of its own and answers go back to it, both delayed. The
// link knows when each came out; what the test sees can only be later.
func TestUDP(t *testing.T) {
	server := listen(t)
	go echo(server)
	const delay = 20 * time.Millisecond
	u, err := link.ListenUDP(link.UDPConfig{Far: local(server), Up: link.Conditions{Delay: delay}, Down: link.Conditions{Delay: 2 * delay}})
	if err != nil {
		t.Fatal(err)
	}
	run(t, u)
	for i := range 3 {
		c := dial(t, u.Near())
		for n := range 3 {
			want := fmt.Sprintf("client %d, packet %d", i, n)
			sent := time.Now()
			if _, err := c.Write([]byte(want)); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 100)
			k, err := c.Read(buf)
			if err != nil || string(buf[:k]) != want {
				t.Fatalf("%q came back, %v; want %q", buf[:k], err, want)
			}
			if d := time.Since(sent); d < 3*delay {
				t.Errorf("round trip in %v, want at least %v", d, 3*delay)
			}
		}
	}
	if s := u.Stats(link.Upward); s.Packets[link.Delivered] != 9 || s.Bytes[link.Delivered] != 9*(18+28) {
		t.Errorf("up: %+v", s)
	}
	if s := u.Stats(link.Downward); s.Packets[link.Delivered] != 9 || u.Refused() != 0 {
		t.Errorf("down: %+v, %d refused", s, u.Refused())
	}
}

// The rate is kept, whatever the scheduler does: a hundred packets in one go come out at the moments that the
// rate gives.
func TestUDPRateAndQueue(t *testing.T) {
	server := listen(t)
	u, err := link.ListenUDP(link.UDPConfig{Far: local(server), Up: link.Conditions{RateBPS: 8e6, QueuePackets: 60}})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var out []mihf.Time
	dropped := 0
	all := make(chan struct{})
	u.Watch(link.Upward, func(now mihf.Time, _ *link.Packet, fate link.Fate) {
		mu.Lock()
		defer mu.Unlock()
		if fate == link.Delivered {
			out = append(out, now)
		} else {
			dropped++
		}
		if len(out)+dropped == 100 {
			close(all)
		}
	})
	u.Change(link.Upward, func(c *link.Conditions) { c.Outage = link.Stall }) // all are there before the first leaves
	run(t, u)
	c := dial(t, u.Near())
	for range 100 {
		if _, err := c.Write(make([]byte, 972)); err != nil { // 1000 on the line: 1 ms
			t.Fatal(err)
		}
	}
	for u.Stats(link.Upward).Packets[link.QueueFull] < 39 { // one in transmission, 60 wait
		time.Sleep(time.Millisecond)
	}
	u.Change(link.Upward, func(c *link.Conditions) { c.Outage = link.NoOutage })
	<-all
	mu.Lock()
	defer mu.Unlock()
	if dropped != 39 {
		t.Errorf("%d dropped, want 39", dropped)
	}
	for i := 1; i < len(out); i++ {
		if d := out[i].Sub(out[i-1]); d != time.Millisecond {
			t.Fatalf("packet %d came out %v after the one before", i, d)
		}
	}
}

func TestUDPBoundsItsClients(t *testing.T) {
	server := listen(t)
	go echo(server)
	u, err := link.ListenUDP(link.UDPConfig{Far: local(server)})
	if err != nil {
		t.Fatal(err)
	}
	run(t, u)
	buf := make([]byte, 10)
	for range link.MaxClients {
		c := dial(t, u.Near())
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(buf); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dial(t, u.Near()).Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for u.Refused() == 0 {
		time.Sleep(time.Millisecond)
	}
}

// A server that is not there yet, whose host answers with ICMP, ends nothing.
func TestUDPServerComesLater(t *testing.T) {
	server := listen(t)
	at := local(server)
	_ = server.Close()
	u, err := link.ListenUDP(link.UDPConfig{Far: at})
	if err != nil {
		t.Fatal(err)
	}
	run(t, u)
	c := dial(t, u.Near())
	for u.Refused() == 0 { // the socket has the error
		if _, err := c.Write([]byte("early")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	server, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go echo(server)
	buf := make([]byte, 10)
	for {
		if _, err := c.Write([]byte("late")); err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := c.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil || string(buf[:n]) != "late" {
			t.Fatalf("%q, %v", buf[:n], err)
		}
		return
	}
}

// Play changes the link in the order of its schedule, and ends with its context.
func TestPlay(t *testing.T) {
	server := listen(t)
	u, err := link.ListenUDP(link.UDPConfig{Far: local(server)})
	if err != nil {
		t.Fatal(err)
	}
	run(t, u)
	var seen []float64
	note := func(up, _ *link.Conditions) { seen = append(seen, up.RateBPS) }
	u.Play(t.Context(), link.Merge(link.Rates(0, 5e6), link.Schedule{{At: time.Millisecond, Change: note}},
		link.Rates(2*time.Millisecond, 0), link.Schedule{{At: 3 * time.Millisecond, Change: note}}))
	if len(seen) != 2 || seen[0] != 5e6 || seen[1] != 0 {
		t.Errorf("rates %v", seen)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	u.Play(ctx, link.Schedule{{At: time.Hour, Change: note}})
	if len(seen) != 2 {
		t.Error("a step after the end")
	}
}

func TestFacesCheckConditions(t *testing.T) {
	bad := link.Conditions{Loss: 2}
	if _, err := link.ListenUDP(link.UDPConfig{Down: bad}); err == nil {
		t.Error("UDP takes a loss of 2")
	}
	if _, err := link.OpenTUN(link.TUNConfig{Up: bad}); err == nil {
		t.Error("TUN takes a loss of 2")
	}
}

// bed is two namespaces joined by a TUN link: 10.9.0.1 near, 10.9.0.2 far.
type bed struct {
	near, far *netns.NS
	*link.TUN
}

func newBed(t *testing.T, up, down link.Conditions) bed {
	t.Helper()
	b := bed{near: netns.New(t), far: netns.New(t)}
	var err error
	b.TUN, err = link.OpenTUN(link.TUNConfig{
		Near: link.End{NS: b.near.Handle, Name: "lnk0", MTU: 1400}, Far: link.End{NS: b.far.Handle, Name: "lnk0", MTU: 1400}, Up: up, Down: down,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.near.AddAddr("lnk0", "10.9.0.1/24", 0, 0)
	b.far.AddAddr("lnk0", "10.9.0.2/24", 0, 0)
	return b
}

// Kernel TCP runs through the link, no faster than its rate and no sooner than its delay.
func TestTUN(t *testing.T) {
	b := newBed(t, link.Conditions{RateBPS: 20e6, Delay: 10 * time.Millisecond, QueueBytes: 1 << 20}, link.Conditions{Delay: 10 * time.Millisecond})
	run(t, b)
	var l net.Listener
	var c net.Conn
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var lc net.ListenConfig
	must(b.far.Do(func() (err error) { l, err = lc.Listen(t.Context(), "tcp", "10.9.0.2:5000"); return }))
	defer l.Close()
	begun := time.Now()
	must(b.near.Do(func() (err error) {
		c, err = (&net.Dialer{Timeout: time.Minute}).DialContext(t.Context(), "tcp", "10.9.0.2:5000")
		return
	}))
	defer c.Close()
	if d := time.Since(begun); d < 20*time.Millisecond {
		t.Errorf("connected in %v, sooner than the link's round trip", d)
	}
	peer, err := l.Accept()
	must(err)
	defer peer.Close()
	must(c.SetDeadline(time.Now().Add(time.Minute)))
	must(peer.SetDeadline(time.Now().Add(time.Minute)))
	const size = 500_000 // 0.2 s
	begun = time.Now()
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(make([]byte, size))
		sent <- err
	}()
	buf := make([]byte, 1<<16)
	for got := 0; got < size; {
		n, err := peer.Read(buf)
		must(err)
		got += n
	}
	took := time.Since(begun)
	must(<-sent)
	if least := 8 * size * time.Second / 20e6; took < least {
		t.Errorf("%d octets in %v, sooner than %v", size, took, least)
	}
	if s := b.Stats(link.Upward); s.Bytes[link.Delivered] < size || s.Packets[link.QueueFull] != 0 || b.Refused() != 0 {
		t.Errorf("up %+v, %d refused", s, b.Refused())
	}
	t.Logf("%.1f Mbit/s of 20", 8*size/took.Seconds()/1e6)
}

// A device that is removed ends the link with an error that names it.
func TestTUNRemoved(t *testing.T) {
	b := newBed(t, link.Conditions{}, link.Conditions{})
	done := make(chan error, 1)
	go func() { done <- b.Run(t.Context()) }()
	b.far.Delete("lnk0")
	if err := <-done; err == nil {
		t.Error("the link outlived its end")
	}
}
