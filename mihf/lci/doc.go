// Package lci estimates what a link carries at its point of attachment: capacity, RTT, jitter,
// loss and buffer, each with source, age and confidence.
//
// # Where values come from
//
// From live flows (mihf.FlowReading). A rate is what the flows of the link got together. It is
// the capacity where one of them had enough to send, was not held up by its peer or its
// own buffer, and either a queue stood on the way or the rate stayed the same without losses; more than
// the capacity that is known raises it in any case, for it was carried. The RTT is the lowest of the
// flows', without the queue. Loss is the share of segments that were sent again while no queue stood: what
// an overflowing queue drops is no property of the link. The buffer is the longest queue that losses ended.
//
// From the radio: the throughput that the driver's rate control expects, else the PHY rate times
// the share of the channel that is free, for as long as it is told. It is a class, not a capacity: its source is
// phy, and it may only lower a rate. From the past: what was measured here before.
//
// # Guarantees
//
//   - Of several sources the best counts: measured, operator, history, modem, phy. A value that was measured and
//     is not confirmed for [Fresh] is history, with its age; after [Forgotten] it is unknown.
//   - A PHY rate never has another source than phy, and no PHY rate as such is a capacity.
//   - Another point of attachment has none of what was measured at the one before.
//   - A value's confidence falls by half with every [HalfLife] of its age.
//   - A flow that comes with counters that go back, jump, or of two readings at one moment, changes
//     nothing with that reading.
//   - The same inputs give the same values, bit for bit. Readings of one moment are one picture of the link.
//   - At most [MaxFlows] flows are kept; one that was not read for [FlowGone] is none. Nothing else grows.
//
// # Limits
//
// Pure; used by one goroutine. Traffic that no reading tells of (UDP, flows of other namespaces) is missing
// from a rate, so a capacity that it shares is found too low. A bottleneck behind the link is taken for the
// link's, unless other flows got more together. Down, a sender that always has the same rate is no evidence, so without a queue
// nothing is found. A buffer is found by flows that fill it, as BBR does not.
package lci
