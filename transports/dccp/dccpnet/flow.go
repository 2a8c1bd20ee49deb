package dccpnet

import (
	"net/netip"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/transports/dccp"
)

// A Conn is a flow for a broker: clients/attach joins it by its methods RTT, Freeze,
// Unfreeze, Characteristics and Switch, and [Conn.FlowSpec] is what to register.
//
//	flow := attach.New(conn, client, attach.Options{Spec: conn.FlowSpec()})
//	go flow.Run(ctx)

// sourcer is a carrier that knows from which address it sends to a peer where it is bound
// to none.
type sourcer interface {
	Source(to netip.AddrPort) (netip.AddrPort, error)
}

// FlowSpec describes the connection to a broker. It rebinds where the peer knows how and
// this end is bound to no address, so that a new route gives it a new one; else it needs
// its address.
func (c *Conn) FlowSpec() mihf.FlowSpec {
	c.mu.Lock()
	defer c.mu.Unlock()
	carrier := c.end.carrier
	local := carrier.LocalAddr()
	s := mihf.FlowSpec{
		Continuity: mihf.ContinuitySameAddress, RTT: c.engine.RTT(),
		LateFreeze: true, MaxFreeze: c.maxFreeze(),
	}
	if c.move.usable && local.Addr().IsUnspecified() {
		s.Continuity = mihf.ContinuityRebinds
	}
	if from, ok := carrier.(sourcer); ok && local.Addr().IsUnspecified() {
		if at, err := from.Source(c.remote); err == nil {
			local = netip.AddrPortFrom(at.Addr(), local.Port())
		}
	}
	protocol := mihf.Protocol(17)
	if local.Port() == 0 {
		protocol = dccp.Protocol
	}
	s.Tuples = []mihf.Endpoints{{Protocol: protocol, Local: local, Remote: c.remote}}
	return s
}

func (c *Conn) maxFreeze() time.Duration {
	if c.opts.Conn.MaxFreeze > 0 {
		return c.opts.Conn.MaxFreeze
	}
	return time.Minute
}

// Characteristics takes what is known of the link: it bounds the rate after the next
// thaw, if that names nothing newer.
func (c *Conn) Characteristics(lci mihf.LCI) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = &lci
}

// Switch tells that the connection is to go on over another link, on which the route to
// the peer is by now: the peer is told of the address that this gives. It does not wait.
func (c *Conn) Switch(s mihf.Switch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = s.LCI
	if c.move.usable && !c.isDone {
		c.startMove(c.end.now(), nil)
	}
}
