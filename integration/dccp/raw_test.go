package dccp

import (
	"context"
	"testing"

	"mihf.dev/integration/netns"
	"mihf.dev/mihf"
	"mihf.dev/transports/dccp"
	"mihf.dev/transports/dccp/dccpnet"
	"mihf.dev/transports/dccp/raw"
)

// Protocol 33 between two namespaces; two connections at one address do not disturb each
// other.
func TestRaw(t *testing.T) {
	a, b := netns.New(t), netns.New(t)
	a.Pair("a0", b, "b0")
	for _, x := range []struct {
		ns   *netns.NS
		link string
		n    string
	}{{a, "a0", "1"}, {b, "b0", "2"}} {
		x.ns.Up("lo")
		x.ns.AddAddr(x.link, "10.33.0."+x.n+"/24", 0, 0)
		x.ns.Up(x.link)
	}
	serve(t, func() (l *dccpnet.Listener, err error) {
		err = b.Do(func() error {
			l, err = raw.Listen("10.33.0.2", dccpnet.Options{Conn: dccp.Config{SrcPort: 5001}})
			return err
		})
		return l, err
	})
	dial := func(ccid uint8, port uint16) (c *dccpnet.Conn, err error) {
		err = a.Do(func() error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c, err = raw.Dial(ctx, "10.33.0.2", dccpnet.Options{Conn: dccp.Config{CCIDs: []uint8{ccid}, DstPort: port}})
			return err
		})
		return c, err
	}
	var conns []*dccpnet.Conn
	for _, ccid := range []uint8{2, 3} {
		c, err := dial(ccid, 5001)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		conns = append(conns, c)
	}
	for range 3 {
		for _, c := range conns {
			ask(t, c)
		}
	}
	if got := conns[0].FlowSpec(); got.Continuity != mihf.ContinuitySameAddress || got.Tuples[0].Protocol != 33 {
		t.Errorf("flow %+v", got)
	}
}
