// Package access says who may do what.
//
// There are five roles. A [Table] gives them: its default to everyone whom a front lets
// in, and the roles of its grants, in addition, to the uids, primary groups, certificates
// and NATS users that they name.
//
// # Guarantees
//
//   - What is not granted is denied. Root and the daemon's own uid have every role; they
//     are known by the kernel's credentials alone, never by a name.
//   - A caller owns the flows of its uid. One that has a name instead owns those of the
//     uid that its grant gives it, and none without; that uid's roles it does not get.
//   - A refusal is a [DeniedError]: it says whose role is missing and where it is granted.
//   - The [Audit] lets at most [MaxLines] lines a second through for each identity, counts
//     the others, and says with the next line how many they were. It keeps a bounded
//     number of identities.
//   - Nobody holds more of [Shares] than one share, nor all together more than the total,
//     but for one thing at a time that is larger than that.
//
// # Limits
//
// Of a process's groups only the primary one is known, as the kernel tells it. Where two
// grants give a name different owners, the first counts; package config refuses that.
//
// Pure. A Table is immutable and may be used by any goroutine; an Audit and Shares by one at a time.
package access
