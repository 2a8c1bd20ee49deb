// Package route knows who is interested in what: the registered flows with their owners
// and links, and the subscriptions' filters.
//
// # Guarantees
//
//   - A flow belongs to the link that it names, else to the link that has its local
//     address (of several its own), else to the link over which the kernel reaches its peer.
//   - A request is refused, with a reason, before anything is changed.
//   - The number of flows, 5-tuples and watched peers is bounded.
//
// # Limits
//
// Pure; used by one goroutine, but for [Filter], which is immutable.
package route
