// Package broadcast makes a subscription out of messages that a front sends to all who
// listen (NATS, D-Bus): it joins what a client caught up with to what it hears live.
//
// # Guarantees
//
//   - Deliveries come in the broker's order, each once, with Previous as that of a
//     subscription of one's own.
//   - A message that was lost ends the stream with [ErrLost] before anything behind it on
//     its link or flow is delivered. clients.Follow then opens another one.
//   - A message of another run of the broker ends the stream likewise.
//
// # Limits
//
// A loss shows with the next message of the same link or flow, or on the way: who listens
// says by [Options.Lost] that its connection dropped something.
//
// Pure but for the channel that the messages come through.
package broadcast
