// Package grpcfront serves the protocol mih.v1 over gRPC: on a unix socket, where the
// kernel says who the caller is, and on TCP with client certificates only.
//
// # Guarantees
//
//   - Each stream has a goroutine of its own that reads its feed and sends; while a peer
//     does not read, nobody else waits, and what is not delivered is bounded by the broker.
//   - An event is encoded once, and once for TCP, whatever the number of its subscribers; held
//     says how long ago that was.
//   - Over TCP ids of points of attachment are what [Options.Hidden] makes of them, in every
//     answer, and are asked for as that; on a unix socket they are as they are.
//   - On one Attach stream an answer to a registration comes before the hints of the flow.
//   - A refused request gets a status (or Failed) that says what and why. A malformed one is
//     counted, and named in the log once a method. A panic in a request is logged and ends
//     that request only.
//   - A peer that vanished is found by keepalive within 30 s, on TCP within about 10 s of
//     something sent to it. Clients may ping every 5 s.
//   - After the broker has ended its feeds, [Server.Run] ends within [Options.Grace].
//
// # Limits
//
// Connections, streams of one connection and the size of a request are bounded. One user's
// connections, calls under way and replies that its connections have not taken are bounded
// too, so that it cannot take what the others need; what is beyond is refused and counted.
// What a connection leaves that breaks counts until the memory is collected. A
// subscriber that was closed as slow while its peer reads nothing sees ABORTED once it
// reads again; until then its stream is kept, with at most 64 KiB of what it was sent.
// Everyone who may connect may use the health service and reflection.
package grpcfront
