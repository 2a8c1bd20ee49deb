package dccp

import (
	"context"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mihf.dev/integration/link"
	"mihf.dev/mihf"
	"mihf.dev/transports/dccp"
	"mihf.dev/transports/dccp/dccpnet"
	"mihf.dev/transports/dccp/udpencap"
)

// breaks is how many outages the test below has; DCCP_BREAKS=100 for the full number.
func breaks(t *testing.T) int {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("DCCP_BREAKS")); err == nil && n > 0 {
		return n
	}
	return 2
}

// isData reports whether a packet of the line carries data of the application.
func isData(p *link.Packet) bool {
	if len(p.Data) < 12 {
		return false
	}
	typ := dccp.TypeOf(p.Data)
	return typ == dccp.TypeData || typ == dccp.TypeDataAck
}

// Real sockets over the link in user space: frozen as far ahead as the round-trip with the
// queue takes, no data packet is sent into breaks of 2 s, and each time the flow goes on.
func TestBreaksOverRealSockets(t *testing.T) {
	l, err := udpencap.Listen("127.0.0.1:0", dccpnet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	way := link.Conditions{RateBPS: 5e6, Delay: 20 * time.Millisecond, QueuePackets: 20}
	host := l.Addr().(dccpnet.Addr).Host
	u, err := link.ListenUDP(link.UDPConfig{Far: host, Bind: netip.MustParseAddr("127.0.0.1"), Up: way, Down: way})
	if err != nil {
		t.Fatal(err)
	}
	var lost atomic.Int64
	for _, d := range []link.Direction{link.Upward, link.Downward} {
		u.Watch(d, func(_ mihf.Time, p *link.Packet, f link.Fate) {
			if f == link.LostOutage && isData(p) {
				lost.Add(1)
			}
		})
	}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() { _ = u.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })

	dialling, done := context.WithTimeout(t.Context(), patience)
	defer done()
	c, err := udpencap.Dial(dialling, u.Near().String(), dccpnet.Options{Conn: dccp.Config{CCIDs: []uint8{3}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s, err := l.AcceptDCCP()
	if err != nil {
		t.Fatal(err)
	}
	wg.Go(func() {
		for b := make([]byte, 500); ; {
			if _, err := s.Write(b); err != nil {
				return
			}
		}
	})
	read := func(within time.Duration) bool {
		_ = c.SetReadDeadline(time.Now().Add(within))
		_, err := c.Read(make([]byte, 1500))
		return err == nil
	}
	flow := func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); {
			read(time.Until(end))
		}
	}
	flow(2 * time.Second)
	for i := range breaks(t) {
		c.Freeze(mihf.Freeze{})
		for end := time.Now().Add(patience); !s.Frozen() && time.Now().Before(end); {
			flow(5 * time.Millisecond)
		}
		flow(c.RTT() + 50*time.Millisecond) // what was sent before arrives
		u.Change(link.Both, func(c *link.Conditions) { c.Outage = link.Blackout })
		flow(2 * time.Second)
		u.Change(link.Both, func(c *link.Conditions) { c.Outage = link.NoOutage })
		begin := time.Now()
		c.Unfreeze(mihf.Unfreeze{})
		if !read(patience) {
			t.Fatalf("break %d: does not go on: %v %+v", i, c.State(), c.Stats())
		}
		t.Logf("break %d: first data after %v, RTT %v", i, time.Since(begin).Round(time.Millisecond), c.RTT().Round(time.Millisecond))
		flow(time.Second)
	}
	if n := lost.Load(); n > 0 {
		t.Errorf("%d data packets were sent into the breaks", n)
	}
	s.Abort()
}
