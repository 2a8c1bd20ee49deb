package endtoend

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"mihf.dev/integration/link"
	"mihf.dev/mihf"
)

// userLink adds to the bed a user-space link lnk0 between the node, 10.9.0.1, and the peer, 10.9.0.2, for as long as the test.
func (b *bed) userLink(c link.Conditions) *link.TUN {
	b.t.Helper()
	tun, err := link.OpenTUN(link.TUNConfig{
		Near: link.End{NS: b.node.Handle, Name: "lnk0"}, Far: link.End{NS: b.peer.Handle, Name: "lnk0"}, Up: c, Down: c,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tun.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
	b.node.AddAddr("lnk0", "10.9.0.1/24", 0, 0)
	b.peer.AddAddr("lnk0", "10.9.0.2/24", 0, 0)
	return tun
}

// connect makes a TCP connection from the node to the peer over the user-space link.
func (b *bed) connect() (near, far net.Conn) {
	b.t.Helper()
	must := func(err error) {
		b.t.Helper()
		if err != nil {
			b.t.Fatal(err)
		}
	}
	var l net.Listener
	var lc net.ListenConfig
	must(b.peer.Do(func() (err error) { l, err = lc.Listen(b.t.Context(), "tcp", "10.9.0.2:0"); return }))
	defer func() { _ = l.Close() }()
	d := net.Dialer{Timeout: patience}
	must(b.node.Do(func() (err error) { near, err = d.DialContext(b.t.Context(), "tcp", l.Addr().String()); return }))
	far, err := l.Accept()
	must(err)
	b.t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return near, far
}

// A kernel TCP flow that is registered by its 5-tuple and states no RTT is on the link of its address, and its lead is
// made of the RTT that the kernel has; when the way gets longer it follows with the flow's next data.
func TestTCPFlowHasItsOwnRTT(t *testing.T) {
	b := newBed(t, "")
	const delay = 60 * time.Millisecond
	tun := b.userLink(link.Conditions{Delay: delay})
	over := b.link("lnk0").Link
	near, far := b.connect()
	at, err := b.client.Attach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	endpoint := func(a net.Addr) mihf.Endpoints { return mihf.Endpoints{Local: a.(*net.TCPAddr).AddrPort()} }
	_, err = at.Register(mihf.FlowSpec{Direction: mihf.DirectionReceive, Tuples: []mihf.Endpoints{{
		Protocol: 6, Local: endpoint(near.LocalAddr()).Local, Remote: endpoint(near.RemoteAddr()).Local,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	flow := func(what string, least time.Duration) {
		t.Helper()
		b.snapshot(what, func(s *mihf.Snapshot) bool {
			if len(s.Flows) != 1 {
				return false
			}
			f := &s.Flows[0]
			return f.Link == over && f.RTTSource == mihf.RTTMeasured && f.RTT >= least && f.RTT < least+5*time.Second && f.Lead > f.RTT
		})
	}
	flow("the RTT of the link", 2*delay)
	tun.Change(link.Both, func(c *link.Conditions) { c.Delay = 5 * delay })
	go func() { _, _ = io.Copy(far, far) }() // ends with the connection
	buf := make([]byte, 1)
	for range 4 { // echoes: it is the smoothed RTT
		if _, err := near.Write(buf); err != nil {
			t.Fatal(err)
		}
		if _, err := near.Read(buf); err != nil {
			t.Fatal(err)
		}
	}
	flow("the longer RTT", 4*delay)
}
