// Package natsfront serves the protocol mih.v1 over NATS: through a server of its own
// inside the daemon, or through one that is there already. docs/nats.md is the protocol.
//
// # Guarantees
//
//   - Each event and hint is published once for all who listen, with the sequence of the one
//     before it on its link or of its flow. Nothing waits in a buffer for a server that is
//     away: it is dropped and counted, and when the server, or a leaf node's
//     link to the cluster, is back, all are told to read the state again.
//   - The daemon is ready, and everything else goes on, whatever NATS does. The connection
//     is tried for ever; one that says nothing for 30 s is given up and made anew.
//   - Requests of one caller are done in order. One caller's requests wait for no more than
//     one of each other caller's; what one has waiting is bounded, and so are all together.
//   - A refused request gets a code and a text. A malformed, oversized or unknown one is
//     counted, and the first of each operation is named in the log. A panic ends its request
//     only.
//   - A session ends when it was not heard of for [Options.Lifetime], and with it the
//     registration of its flows. A caller's sessions are bounded.
//   - The daemon publishes on a subject that a client names only if it is an inbox; of the
//     embedded server's users, only if it is that user's own.
//   - The embedded server lets in nobody without a credential and has no listener unless one
//     is given. It lets its users publish requests only, and hear events, their own inboxes,
//     and the hints that they may see. It says itself who asks.
//   - A user has no more than its share of the embedded server's connections
//     ([Embedded.MaxConnections]). Of those who have not said who they are [maxStrangers] are
//     left, where one looks each [sweepEvery], so that they keep nobody out.
//   - What its users may do is what [Options.Grant] says when they connect. [Server.Regrant]
//     ends the connections of those for whom that has changed.
//   - With [Options.Events] that hide points of attachment nothing that is published, answered
//     or delivered has the id of one.
//   - At the end the broker's last hints are published and flushed, within [Options.Grace].
//
// # Limits
//
// An answer goes where its request says: on the embedded server that can be any subject, so
// messages without the header Mihf-Previous are no events. On a server that is not the
// daemon's own, who may publish what is that server's business; so is who asks, unless
// [External.TrustRequestInfo]. NATS delivers at most once: a loss shows with the next
// message of the link or flow.
package natsfront
