// Package busconn is a connection of one's own to a message bus, for the D-Bus front, its
// clients, and sensors that read a bus. It stands on godbus, and keeps what that leaves open.
//
// # Guarantees
//
//   - Nothing waits for a bus that stands still but who asks for it: a write is taken by the
//     kernel, or kept, or refused with [ErrBusy]. What is kept is bounded. [Conn.Room] waits
//     until the bus takes more.
//   - A call ends after [CallTimeout] at the latest, and with its context.
//   - Method calls and signals are handed over one after another, in the order in which they
//     came, by one goroutine.
//   - A message above [Options.MaxMessage] is not read into memory: a call is refused by name
//     (LimitsExceeded), an answer becomes an error, anything else is passed over, as is what
//     has 64 KiB of header. A message that the bus passes on and godbus cannot decode ends
//     nothing either. [Options.Unread] is told of each but calls that cannot be decoded.
//   - Calls are decoded by who handles them ([Call.Args]), signals only from whom they are
//     wanted: nobody can keep the connection busy with decoding.
//   - No file descriptor is taken from anybody: it is not negotiated, and the bus refuses
//     messages that have some.
//   - That the bus is lost shows in [Conn.Done], whatever stands in the way.
//
// # Limits
//
// Buses are reached by unix:path= and unix:abstract= addresses. What the kernel's socket
// buffer took before a bus stood still is delivered when it goes on, as old as it is then;
// [Options.SendBuffer] bounds it.
//
// Shell: any goroutine may use a Conn. Close waits for nobody.
package busconn
