// Package sim is a discrete-event bed: links with a rate, a delay and a queue, outages and
// changes by schedule, and the endpoints of flows on them. The endpoints are the same pure
// machines as in the programs; the bed carries packets between them and tells them the time.
//
// # Guarantees
//
//   - One goroutine. What is due at the same moment happens in the order in which it was
//     asked for, so a seed gives one run, and its [Trace] is equal octet for octet.
//   - Every random choice comes from a stream with a name ([Sim.Rand]). A stream depends on
//     the seed and its name alone: another source of randomness in a run shifts no other.
//   - Time is counted in whole nanoseconds, also that of a transmission.
//   - A packet that enters a link leaves it once: it is delivered or dropped, with a [Reason].
//     Both are counted ([Link.Stats]).
//   - A queue holds at most the packets that its link was given room for, besides the one in
//     transmission, and drops what comes when it is full (DropTail).
//   - While a link is down nothing is delivered over it. What was in it when it went down is lost.
//   - A run that stands still, in which a machine asks again and again for the present moment,
//     ends in a panic and not in an endless loop.
//
// # Limits
//
// A link sends in one direction and has one queue. Its transmission has no medium access: what
// several stations on one channel do to each other is not modelled here. Forwarding takes no
// time, and endpoints no processor time.
package sim
