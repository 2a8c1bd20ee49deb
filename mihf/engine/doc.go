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
//   - Nothing grows without bound: links, flows, sensors, explanations and what is kept for
//     them are limited, and what is refused is counted.
//   - From a radio observation to the hints it causes nothing is allocated once the
//     buffers have their size.
//
// # Limits
//
// Used by one goroutine. It knows no caller: who may ask for what is decided before.
package engine
