// Package live makes the connections of this host survive the changes of its links: it
// hears from a broker when a path breaks and carries again, and has the kernel act.
//
// # Guarantees
//
//   - Recovery: when a path is usable again, the connections from its source address go on
//     at once: those that wait for an acknowledgement with the window they had while the
//     path last carried, those that wait for data by telling their senders what they have.
//   - Adjust and Freeze do nothing unless they are asked for.
//   - Only connections of the links and users that are named are touched, and none whose
//     address has left its link.
//   - What was changed and isn't wanted any more is put back: when it is over, when the
//     agent ends, and after a crash by the next start, where the [Journal] has a file.
//   - A dry run changes nothing and says what it would do.
//
// # Limits
//
// An [Agent] acts in the network namespace of the goroutine that runs it, on TCP alone. How
// a window was while the path carried is looked at once a second.
package live
