// Package queue holds what was published, once for all subscribers, and each
// subscriber's place in it.
//
// A [Log] keeps the newest items in three bounded rings, which are what can be replayed,
// too: one for events that are never dropped, one for hints, one for reports and
// detections. So none of them pushes out another; one order goes through all. A [Cursor] is one subscriber's bounded queue: not a copy of the items, only the place
// up to which it has read, and its filter. So a publisher's work does not grow with the
// number of subscribers, and a subscriber that stopped reading costs nothing.
//
// # Guarantees
//
//   - A cursor delivers in the order of the sequence numbers, each item at most once.
//   - NeverDrop kinds and hints are delivered, or the cursor ends with mihf.ErrSlow as
//     soon as one that it has not looked at falls out of its ring. To a cursor whose filter
//     passes no hints, nothing that happens to hints matters.
//   - NewestOnly kinds: of one series (link and parameter, sensor, flow) the newest is
//     always delivered; the delivery counts the older ones it stands for, at least those
//     that were still in the ring.
//   - DropOldest kinds: what fell out of the ring is stated as a gap, at the place in the
//     order of the newest that is lost.
//   - Resuming behind a sequence delivers what follows it under the same rules, or is
//     refused where a NeverDrop event that followed it is gone, or a hint where they pass.
//   - A bounded cursor delivers what was in the log when it was bounded, by the same rules,
//     and then io.EOF. Of a series that goes on meanwhile it delivers what is still in the
//     ring, one by one.
//   - Append and Read allocate nothing once the rings have their size. A series allocates
//     when it is first seen; conflating it, one counter per cursor that fell behind.
//
// # Limits
//
// Pure: the owner serialises Append against Read. Reads of different cursors may run
// side by side. The newest items of 16,384 series are kept; beyond that the series that
// was silent longest is forgotten, and a cursor that the ring outran misses its newest.
package queue
