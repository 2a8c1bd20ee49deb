// Package bench measures how fast the broker is, each time beside a bare counterpart that
// does the same work without a broker.
//
// # Guarantees
//
//   - Bare and ours alternate in one process, in rounds, and a ratio is the median of the
//     rounds' ratios: a machine that is busy for a while slows both.
//   - What is measured goes the whole way: from Observe through the engine to who is told.
//     Deliveries that did not come are counted, not left out.
//   - The default run takes less than 15 s for the fan-out and less than 25 s for each
//     front. Options.All adds NATS without a socket, the subscriber that stopped reading and
//     the memory.
//   - What needs a program that is not there is left out, and that is said.
//
// # Limits
//
// Publishers are paced by sleeping, so that what is measured has the processors to
// itself; where a sleep ends late, the events that became due meanwhile are published at
// once, in all cases alike. Linux only (unix sockets, /proc).
package bench
