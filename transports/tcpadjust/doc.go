// Package tcpadjust decides what becomes of a TCP connection when its path changes and the
// characteristics of the new one are told: Quick-Adjust. It plans; what carries a plan out,
// a kernel's socket or the bed's sender, is not its matter.
//
// # Guarantees
//
//   - What comes from where decides what it may do: measured values and those of an operator
//     raise and lower; history raises by the rules of RFC 9959 (to at most half of what was
//     once reached, and back if it proves wrong); modem and PHY classes only lower.
//   - Nothing is done on characteristics that are stale, implausible, without confidence or
//     contradicted by the connection itself: the plan then says which (RFC 4907).
//   - A raise never leaves as a burst: it comes with a pacing rate below the path's. Where
//     a packet of it is lost, or the path carries less, it is taken back ([Conn.Observe]).
//   - A connection asks for its part of the path, not for the path.
//   - Nothing allocates but the words of a plan that does nothing.
//
// # Limits
//
// The characteristics are those of the bottleneck, as far as is known: a path whose
// bottleneck lies elsewhere is found by the loss and by the rate delivered, one round trip
// after the raise. A [Conn] serves one connection and is used by one goroutine.
package tcpadjust
