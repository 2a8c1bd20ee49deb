// Package tfrc is TCP-Friendly Rate Control: the sender and the receiver of RFC 5348 and,
// where CCID 3 of DCCP differs, of RFC 4342.
//
// # Use
//
// Both machines are pure: calls take the moment, Next tells when Advance is due. Who sends
// asks [Sender.NextSend], and for each packet that goes calls [Sender.Send], which fills in
// the [Header] that the packet has to carry. Who receives gives each packet to
// [Receiver.Receive]; when that or [Receiver.Advance] says so, it calls [Receiver.Report]
// and brings the report to the sender, which gives it to [Sender.Feedback].
//
// # Freeze
//
// [Sender.Freeze] stops a sender before its path breaks, with all that it knows, and
// [Sender.Unfreeze] lets it go on where it was: it restores the rate, and when a
// round-trip passed without a loss it probes for more, as in slow-start. Sender and
// receiver keep in step by [Options] that every packet carries. What is known of the new
// path, a [Path], bounds the restored rate and tells Probing where to stop, without the
// losses by which it finds out otherwise. This is Freeze-DCCP (Mehani, Boreli, Jourjon,
// Ernst: Rate Control Adaptation for Heterogeneous Handovers), with what it leaves open
// settled as follows.
//
//   - After a restart round-trip times are measured anew, and X_recv counts from the first
//     packet after it: what came before is of a path that may be gone. A loss from before
//     the restart says nothing of the path after it.
//   - Restoring ends with the first report that lies wholly after the restart, and at the
//     latest after 4 round-trips. A report does if the receiver says so, or if it names a
//     packet sent a round-trip after the restart.
//   - Probing ends with a new loss event; where the receiver tells only p, by what p does:
//     it may stay as it is until the current interval counts, and then has to fall, but
//     not faster than by the packets that were really reported.
//   - Losses on packets that were sent before the sender knew of the first one in Probing
//     belong to that loss event.
//   - What a [Path] says may be wrong. From its capacity on Probing takes small steps that
//     double, and ends when round-trip times show a queue. The sender then makes what has
//     arrived the past of its loss history, as the receiver does after a loss in Probing;
//     a loss among the packets that were sent before that does not count again.
//
// # Guarantees
//
//   - The allowed rate is never below a segment in 64 s, and never above twice what was
//     received lately, but for the initial rate and the first two round-trips.
//   - With reports of loss, it is never above what the throughput equation gives, but while
//     Restoring and Probing.
//   - Without reports it is halved each time the nofeedback timer expires; an idle time
//     does not bring it below the initial rate.
//   - No burst is longer than a round-trip of the paced rate, or than
//     [SenderConfig.MaxBurst].
//   - A loss is told from reordering by three later packets, of any type. One that comes
//     later still is taken back, with its loss event if that has no other loss.
//   - A frozen sender sends nothing and forgets nothing, and thaws to the initial rate
//     when its lease lapses. Restoring never exceeds the rate before the freeze.
//   - Whatever options and reports are lost, both machines come back to Normal.
//   - The same calls give the same answers.
//   - No allocation after the constructor. All state is bounded.
//
// # Limits
//
// A rate counts application data, as s does: headers come on top. The receiver remembers
// the newest 32 runs of lost packets; what comes late from before them counts as a
// duplicate. The sender remembers the sending times of 128 packets, evenly spread over
// those that are not acknowledged, and reads the others from between. ECN nonces are
// historic (RFC 8311) and not used. Faster restart follows the idea of RFC 5348, section
// 9.1's "Faster Restart", which never became a standard: it is off unless asked for.
package tfrc
