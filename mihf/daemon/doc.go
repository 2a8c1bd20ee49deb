// Package daemon is the frame of a daemon: a list of tasks that start and end together,
// and what a service manager is told of them.
//
// # Guarantees
//
//   - [Serve] tells READY=1 when all tasks are ready, once, and STOPPING=1 as soon as they
//     are to end. It returns when all have ended.
//   - A task that fails ends the others, and its error is what Serve returns. A cancelled
//     context is no error. A panic in a task is an error, [*PanicError], with its stack.
//   - The first SIGINT or SIGTERM ends the daemon in order; from then on it no longer
//     catches them, so that the second one kills it ([Caught.Obey]).
//   - A signal that comes before the tasks run is obeyed when they do ([Catch]).
//   - The watchdog is fed only while the probe answers in time ([Watchdog]).
//
// # Limits
//
// A panic in a goroutine that a task started by itself is not caught. A task that does not
// return when its context ends keeps Serve from returning.
package daemon
