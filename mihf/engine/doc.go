// Package engine is the whole decision of the broker as one pure machine: observations,
// registrations and the passing of time go in; events and hints come out, numbered in
// one order.
//
// The same value runs in the daemon (package broker owns it in one loop), in virtual time
// over a recording, and in the simulation bed.
//
// # Guarantees
//
//   - Sequence numbers rise strictly over events and hints together.
//   - A Freeze that follows from a forecast names its prediction, and has a higher
//     sequence than the Link_Going_Down that announced it.
//   - The same inputs give the same outputs, bit for bit.
//   - Nothing grows without bound: links, flows, sensors, points of attachment, explanations
//     and what is kept for them are limited, and what is refused is counted.
//   - From a radio observation to the hints it causes nothing is allocated once the
//     buffers have their size.
//   - An input never overtakes what was due before it; after Advance nothing is due.
//   - A default route that is away for less than [Config.RouteHold] moves no flow; a flow
//     follows the kernel's mere preference at most once in a hold-down, and never back to a
//     link in hold-down.
//   - While Link_Down is withheld for a roam no flow is moved, unless the kernel itself
//     prefers another link meanwhile.
//   - A flow that needs its address is given up only when its link has had a usable path
//     without that address for [Config.AddressHold].
//   - The flows of a link are told what it carries when that has changed significantly
//     (lci.Significant), at most once a second unless the point of attachment or the MTU is another.
//   - What was forecast before a suspend ends with it, to recovery.
//
// # Limits
//
// Used by one goroutine. It knows no caller: who may ask for what is decided before. A
// withdrawn default route is not told apart from one that is only being replaced: both are
// held. Without a history of data-path gaps a network-ordered handover freezes nobody.
package engine
