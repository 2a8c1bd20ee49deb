// Package tcp holds a TCP sender and receiver for the bed: pure state machines that take the
// moment first, return what to send and say when they want to be woken.
//
// # Guarantees
//
//   - Loss recovery by NewReno (RFC 6582), by selective acknowledgements (RFC 6675) or by time with
//     tail loss probes (RACK-TLP, RFC 8985) and proportional rate reduction (RFC 6937); with the
//     retransmission timer of RFC 6298 and limited transmit (RFC 3042).
//   - Congestion control by Reno (RFC 5681), CUBIC (RFC 9438) or BBR, version 1, which is paced.
//   - Never more than one congestion response for the segments of one window.
//   - The receiver acknowledges at once what is out of order or fills a gap, and at least every
//     second segment (RFC 5681, 4.2); it reports the newest block first (RFC 2018).
//   - Whatever the network does to segments and acknowledgements short of losing all of them,
//     every segment is delivered in the end, once and in order.
//   - A closed window is probed (RFC 9293, 3.8.6.1).
//   - No allocation for a segment once the tables have grown to the window.
//
// # Limits
//
// The unit is the segment: all have the same size and windows count segments, not octets. There
// is no handshake and no end of a connection. A receiver never takes back what it has reported
// (RFC 2018 allows that; no receiver of the bed does it). CUBIC starts without HyStart++; BBR has no
// model of aggregated acknowledgements and no detection of policers. No spurious timeout is undone.
package tcp
