// Package mihnats is the client of the broker's NATS front.
//
// # Guarantees
//
//   - Every duration is counted from the message's sending: a message that was held up on its
//     way is as old as the least that its way is known to have taken more than others. Times
//     are of the client's own clock.
//   - Errors wrap those of the vocabulary, with the text that the broker gave.
//   - A message that cannot be read is counted and skipped. It leaves a hole in the order of
//     its link or flow, as one that was lost does, and [clients.Follow] reads the state
//     again; so it does when the connection was lost, when the daemon says that it was cut
//     off, and when the daemon has not been heard of for 15 s. A kind that a newer broker
//     added leaves no hole.
//   - An attachment says every 5 s that it is there. It ends with its connection, when the
//     daemon does not know it any more, and when a hint was lost.
//   - What waits for a reader is bounded: one who stands still is cut off as slow.
//
// # Limits
//
// An acknowledgement is sent, not answered: that the broker refused it is only counted. A
// flow's first hint may be there before the answer to its registration. NATS tells nobody
// that a message was lost; where nothing more comes of that link or flow it is not seen.
package mihnats
