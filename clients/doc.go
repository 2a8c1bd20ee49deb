// Package clients is the contract of the broker's clients, whatever front they speak to,
// and what they have in common.
//
// # Guarantees of [Follow]
//
//   - Deliveries come in order, each once. What was missed is stated: a gap comes before
//     the snapshot that makes up for it.
//   - A lost connection is dialled again by itself, with growing, jittered pauses of at most
//     3 s, and the subscription resumes where the reader was. If the broker was restarted
//     or does not remember so far back, a snapshot follows.
//   - It ends when its context ends, when it or its client is closed, or when the broker
//     refuses it (mihf.ErrPermission, ErrInvalid, ErrNotFound).
//   - A request with Present ends with io.EOF once it has all that it asked for. Where the
//     connection is lost before, what was published meanwhile belongs to it.
//
// # Limits
//
// A Feed is read by one goroutine. Nothing is buffered here: a reader that stands still
// is, in the end, closed by the broker as slow, and resumes.
package clients
