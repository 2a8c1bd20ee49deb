// Package dccpnet gives DCCP connections the form of package net: a [Conn] is a net.Conn
// that reads and writes datagrams, a [Listener] a net.Listener. What carries the packets
// is a [Carrier], of which udpencap and raw have one each.
//
// # Guarantees
//
//   - A Read returns one datagram, a Write takes one; a datagram longer than MaxData is
//     refused with [ErrTooLong], and a Read with too little room returns what fits.
//   - Read and Write keep their deadlines, and end when the connection does: Read returns
//     what came before, then io.EOF where the peer closed, else the reason.
//   - Close sends what was written and closes in order, waiting for both, at most
//     Options.Linger; then it aborts. It may be called more than once. After it nothing of
//     the connection is left but, at a listener, the tuple of one that has TIMEWAIT.
//   - A freeze of a [Conn] ends by itself (see dccp.Config.MaxFreeze).
//   - Datagrams for which a receive queue has no room are dropped, counted, and reported to
//     the sender, which slows down. All queues are bounded.
//   - A listener holds at most Options.HalfOpen connections whose handshake is not done;
//     beyond that, Requests are answered with cookies and kept nowhere. It holds at most
//     Options.Backlog that nobody has accepted; more are refused.
//   - A connection goes on from another address of either end, where both ends know how:
//     by [Conn.Rebind], or by itself where a NAT has another way for it. The new address is
//     not sent to before it has answered a challenge, and only who holds the key that the
//     ends agreed on at set-up, by X25519, can move a connection. What comes of a move that
//     is not genuine is nothing; an answer is never longer than what it answers.
//   - Packets that cannot be sent are counted, and taken by congestion control as lost;
//     that an address or route is gone ends no connection.
//
// # Limits
//
// Who sits on the path during the set-up can take a connection over, as he can without
// rebinding: the key is agreed on, not certified.
//
// All methods may be called from any goroutine. Packets of one connection are sent in
// order, under its lock. Deadlines are of the process's time; freezes and timers of the
// protocol are too, so that they stand still while the machine is suspended.
package dccpnet
