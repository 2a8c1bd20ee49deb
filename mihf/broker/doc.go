// Package broker is the shell around the engine: one loop owns all state; sensors publish
// into it, fronts subscribe, attach and ask.
//
// # Order and delivery
//
// All events and hints have one order by sequence. A subscriber gets a snapshot at some
// sequence and then everything after it that its filter passes, or, resuming, exactly
// what followed the sequence that it names. Package queue says what may be conflated,
// what may be dropped, and that everything else arrives or the subscription ends with
// mihf.ErrSlow.
//
// # Who waits for whom
//
// Nobody waits for a subscriber: it reads from the shared log at its own pace. Observe
// waits only while the loop has [Config.Inputs] observations before it. A handler
// registered with [Broker.Handle] runs in the loop and must not block.
//
// # Ownership
//
// The loop of [Broker.Run] owns the engine and the attachments' tables. The log is
// guarded by one lock: the loop writes, subscribers read.
//
// # Limits
//
// The number of subscriptions, attachments and flows is bounded. When Run ends, frozen
// flows are thawed to recovery, subscribers read what is left and then get
// mihf.ErrClosed.
package broker
