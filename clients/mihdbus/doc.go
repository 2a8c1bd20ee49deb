// Package mihdbus is the client of the broker's D-Bus front.
//
// # Guarantees
//
//   - Every duration is counted from the message's arrival, less the time it was held; times
//     are of the client's own clock.
//   - Errors wrap those of the vocabulary, with the text that the broker gave. A bus or broker
//     that is not there, or does not answer within 2 s, is mihf.ErrClosed.
//   - Only what the owner of the broker's name sends is heeded; it is the bus that says who
//     that is.
//   - Messages are taken in the order in which they come. What waits for a reader is bounded
//     by [Options.Queue]; a subscription or attachment whose reader is further behind ends
//     with mihf.ErrSlow, behind what it had. A recording counts what it lost.
//   - The loss of the bus or of the broker ends what is open. [clients.Follow] then comes back
//     on another connection, and an attachment is made anew by package attach.
//   - A message that cannot be read is counted and skipped; the order shows that it is
//     missing. An event or hint of a kind that a newer broker added is counted and passed
//     over, as if it were not there.
//
// # Limits
//
// Each attachment has a connection to the bus of its own: the broker ends registrations with
// the connection. An acknowledgement is sent, not answered. The bus's policy may refuse what
// the broker would allow.
//
// Shell: any goroutine may use a Client. Each connection is read by one goroutine that waits
// for nobody.
package mihdbus
