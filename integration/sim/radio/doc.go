// Package radio adds an IEEE 802.11 channel to the bed: stations at places, that contend by
// the distributed coordination function (DCF) with basic access, and forward packets hop by
// hop.
//
// # What is modelled
//
//   - Carrier sense within a range, and defer: DIFS after a frame that was read, EIFS after
//     one that was only sensed or came damaged (IEEE 802.11-2020, 10.3.2.3.7), and the
//     network allocation vector of frames that were read.
//   - Binary exponential backoff, counted in slots while the channel is idle and stopped while
//     it isn't; acknowledgements a SIFS after the frame; retries up to a limit; duplicates are
//     found by their sequence number.
//   - Interference: a frame is read if the receiver is within the range of its rate, sends
//     nothing itself meanwhile, and senses no other frame during any part of it. There is no
//     capture: the stronger of two frames is lost with the weaker one.
//   - A drop-tail queue a station; and, where a flow is throttled at its source ([Gate]), one
//     more for its own packets, served first.
//
// # Guarantees
//
//   - One seed gives one run, as the bed promises.
//   - Two stations that sense each other collide only where their counters end in the same slot.
//   - A packet given to a [Way] is forwarded once, or freed and counted by its reason.
//
// # Limits
//
// Propagation takes no time, which is 2 µs at most over the ranges in question. There is no
// RTS/CTS, no fading, no rate adaptation (a way has the rate it was made with, or that of its
// distance) and no management traffic.
package radio
