// Package dccp is the Datagram Congestion Control Protocol of RFC 4340: unreliable
// datagrams on a connection with congestion control. It has CCID 2 (RFC 4341), CCID 3 (RFC
// 4342) and an extension by which a connection survives a handover: Freeze.
//
// The package is pure: it does no I/O, starts no goroutine and reads no clock. [Conn] is
// one end of a connection: [Conn.Receive] takes packets, [Conn.Poll] gives them,
// [Conn.Next] tells when [Conn.Advance] is due. [Listener] answers what belongs to no
// connection. What carries the packets is beside it: udpencap (over UDP, RFC 6773) and raw
// (IP protocol 33).
//
// # Guarantees
//
//   - A datagram is delivered at most once, and not changed by the network unless the
//     ends agreed on a partial checksum.
//   - No more is in flight than the congestion control in force allows.
//   - Who cannot guess sequence numbers of 48 bits can neither end, resynchronise nor
//     change a connection, nor put data into it. Packets outside of the windows get at
//     most eight Syncs a second. (With short sequence numbers, data can be put into it
//     with some ten thousand tries.)
//   - A [Listener] that uses cookies keeps nothing of a Request.
//   - A frozen connection sends no data and keeps what it knew of the path. A freeze ends
//     after Config.MaxFreeze, at each end by itself, to recovery.
//   - The newest of Freeze and Unfreeze counts; Unfreeze is repeated until the peer has it.
//   - A peer that is gone is noticed: after twice Config.Keepalive, or when it does not
//     answer a Request or Close. Time while frozen does not count.
//   - Ends with the extension and without work together.
//   - All state is bounded, and what does not fit is counted in [Stats].
//
// # The Freeze extension
//
// Feature 120, server-priority, at each end: this end knows the extension. Where both ends
// have 1, option 120 (Freeze) stops the data of the end that receives it, and option 121
// (Unfreeze) lets it go on; 121 may carry four bytes, the rate in bytes a second that the
// path to the other end holds. A rate of 0 is recovery: nobody knows what the path holds,
// and the other end probes instead of going on at its old rate. Both stand on every packet
// with an acknowledgement number until one of those is acknowledged, and Syncs are sent to
// have that happen. The options of CCID 3 that go with it are 129 (Restoring) and 130
// (Probing) on data, and 195 (Unfrozen) on feedback.
//
// Option 122 carries Config.Hello on Requests and Responses.
//
// # Limits
//
// Endpoints are not ECN-capable and say so. Data on Requests and Responses is neither
// sent nor taken. A change of the congestion control during a connection is refused, as
// section 10.5 allows. Packets that come more than 256 after the newest are taken for
// duplicates. Fragmentation is not offered. Of the losses that Stats tells, CCID 3 knows
// none: its receivers report intervals.
package dccp
