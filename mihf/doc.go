// Package mihf is the vocabulary of the mobility event broker: the terms of
// IEEE 802.21 (links, points of attachment, events, commands) and ours (flows,
// forecasts, hints, link characteristics), as plain values.
//
// # Guarantees
//
//   - Only the standard library is imported; nothing here does I/O, reads a
//     clock, starts a goroutine or takes a lock.
//   - A value that is not known is absent, never 0, -1 or 99. [Values] and [Opt]
//     say which are known; [Values.Set] refuses what is not finite or lies outside
//     the parameter's range, so that no consumer meets a sentinel.
//   - A [Time] is nanoseconds of boot time. Wall time is only for people.
//   - Values are safe to copy. What a pointer field of an [Observation], [Event],
//     [Hint] or [Snapshot] points to is never changed after it was handed over.
//
// # Limits
//
// Identifiers are opaque strings for everyone but the package that made them.
// SSIDs and interface names are arbitrary octets: print them with [Escape].
package mihf
