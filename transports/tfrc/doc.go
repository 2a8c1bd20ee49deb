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
// # Guarantees
//
//   - The allowed rate is never below a segment in 64 s, and never above twice what was
//     received lately, but for the initial rate and the first two round-trips.
//   - With reports of loss, it is never above what the throughput equation gives.
//   - Without reports it is halved each time the nofeedback timer expires; an idle time
//     does not bring it below the initial rate.
//   - No burst is longer than a round-trip of the paced rate, or than
//     [SenderConfig.MaxBurst].
//   - A loss is told from reordering by three later packets, of any type. One that comes
//     later still is taken back, with its loss event if that has no other loss.
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
