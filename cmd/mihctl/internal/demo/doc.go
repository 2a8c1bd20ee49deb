// Package demo shows the whole path in one process: the daemon, its gRPC front on a private
// socket, and a client with a flow, while a recorded walk is played.
//
// # Guarantees
//
//   - It ends by itself, leaves nothing behind, and talks to nobody else.
//   - Times are of the recording (trace times), whatever the speed. Those of the client's
//     Freeze and Unfreeze are of the moment at which the client had them.
//   - The loss is what the recording tells (its truth); nothing in the daemon knows it.
//
// # Limits
//
// Real delays are multiplied by the speed in trace time. Above a speed of [MaxSpeed] they
// would say nothing any more.
package demo
