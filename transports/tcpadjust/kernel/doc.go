// Package kernel carries plans of package tcpadjust out on live TCP connections of this
// kernel, whichever process they belong to.
//
// A BPF iterator visits each socket with the socket locked. It can switch the socket for an
// instant to a congestion control of ours, whose init sets the window and the slow-start
// threshold and can have an acknowledgement sent, and back to its own in the same run (the
// kick); and it sets the window's clamp, the pacing rate and the bounds of the
// retransmission timer. A classifier on the way out of an interface sets the window that
// acknowledgements advertise to zero, until a deadline (the freeze).
//
// The programs are assembled when they are loaded, with the offsets that the running
// kernel's BTF tells: nothing is compiled, and one build serves kernels from 6.1 on. Their
// licence is MIT or GPL, which the kernel asks for; see [License].
//
// # Guarantees
//
//   - A socket is on the kick's congestion control only within one run of the iterator: a
//     process that dies leaves none on it.
//   - Only sockets that are named, by the kernel's cookie of each, are changed. A cookie is
//     never given to a second socket.
//   - A freeze ends at its deadline without this process, at most [MaxFreeze] after it was
//     made, and at once when the process ends.
//   - What a socket had before it was changed is returned, so that it can be restored.
//   - What the kernel lacks or refuses is an error that says what is missing ([Open]).
//
// # Limits
//
// An [Actuator] acts in one network namespace and is safe for concurrent use; runs of the
// iterator happen one after another. Sockets are visited by walking the kernel's table,
// 2 ms at least. TCP alone; a connection over MPTCP is its subflows.
package kernel
