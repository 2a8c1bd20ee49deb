// Package queue holds what was published, once for all subscribers, and each
// subscriber's place in it.
//
// A [Log] keeps the newest items in two bounded rings: one for events that are never
// dropped and for hints (it is the replay ring too), one for reports and detections. A
// [Cursor] is one subscriber's bounded queue: not a copy of the items, only the place
// up to which it has read, and its filter. So a publisher's work does not grow with the
// number of subscribers, and a subscriber that stopped reading costs nothing.
//
// # Guarantees
//
//   - A cursor delivers in the order of the sequence numbers, each item at most once.
//   - NeverDrop kinds and hints are delivered, or the cursor ends with mihf.ErrSlow as
//     soon as one that it has not read falls out of the ring, or more than its bound wait.
//   - NewestOnly kinds: of one series (link and parameter, sensor, flow) the newest is
//     always delivered; the delivery counts the older ones it stands for.
//   - DropOldest kinds: what fell out of the ring is stated as a gap before the next
//     delivery.
//   - Resuming behind a sequence delivers exactly what follows it, or is refused.
//   - Append and Read allocate nothing once the rings have their size; conflating a
//     series allocates one counter per series and cursor.
//
// # Limits
//
// Pure: the owner serialises Append against Read. Reads of different cursors may run
// side by side.
package queue
