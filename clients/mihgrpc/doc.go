// Package mihgrpc is the client of the broker's gRPC front.
//
// # Guarantees
//
//   - Every duration is counted from the message's arrival, less the time it was held;
//     times are of the client's own clock.
//   - Errors wrap those of the vocabulary, with the text that the broker gave.
//   - A message that cannot be read is counted and skipped; the order shows that it is
//     missing, so [clients.Follow] takes a snapshot. An event or hint of a kind that a newer
//     broker added is counted and passed over, as if it were not there.
//   - Idle connections are probed every 20 s, and a dead one is found 10 s later.
//
// # Limits
//
// An acknowledgement is sent, not answered: that the broker refused it is only counted.
// While a registration waits for its answer and nobody reads hints, at most 1,024 of them
// wait; one more ends the attachment as slow.
package mihgrpc
