package dccpnet

import (
	"time"

	"mihf.dev/mihf"
	"mihf.dev/transports/dccp"
)

// RTT returns the round-trip time with queues; 0: not known yet.
func (c *Conn) RTT() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engine.RTT()
}

// Freeze stops the data in both directions, as far as the peer knows the extension, until
// Unfreeze or Conn.MaxFreeze. What is written meanwhile waits in the send queue.
func (c *Conn) Freeze(mihf.Freeze) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.end.now()
	c.engine.Freeze(now)
	c.turnLocked(now)
}

// Unfreeze lets the data go on: at the rate from before, or probing where u.Recovery is
// set; not above what u.LCI, or else the newest Characteristics, says of the path.
func (c *Conn) Unfreeze(u mihf.Unfreeze) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.end.now()
	if u.LCI == nil {
		u.LCI = c.known
	}
	c.known = nil
	c.engine.Unfreeze(now, u.Recovery, u.LCI)
	c.turnLocked(now)
}

// Frozen reports whether data is held back by a freeze of either end.
func (c *Conn) Frozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engine.Frozen()
}

// Stats are the counters of a connection.
type Stats struct {
	dccp.Stats
	RebindStats
	Unsent   uint64 // packets that could not be sent
	Overflow uint64 // datagrams that found the receive queue full
	Waiting  int    // datagrams in the send queue
	// BadChecksums counts packets that came with a wrong checksum, for all connections of
	// the socket.
	BadChecksums uint64
}

// Stats returns the counters.
func (c *Conn) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{Stats: c.engine.Stats(), RebindStats: c.moves, Unsent: c.unsent, Overflow: c.overflow, Waiting: c.out.n, BadChecksums: badChecksums(c.end.carrier)}
}

// MaxData returns the longest datagram that can be written, in bytes. It changes with the
// path.
func (c *Conn) MaxData() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engine.MaxData()
}

// State returns the state of the protocol.
func (c *Conn) State() dccp.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engine.State()
}

// CCIDs returns the congestion controls in force: of what is sent and what is received.
func (c *Conn) CCIDs() (tx, rx uint8) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engine.CCIDs()
}

// Service returns the service code.
func (c *Conn) Service() dccp.ServiceCode {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engine.Service()
}
