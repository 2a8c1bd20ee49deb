// Package broker is the shell around the engine: one loop owns all state; sensors publish
// into it, fronts subscribe, attach and ask.
//
// # Order and delivery
//
// All events and hints have one order by sequence. A subscriber gets a snapshot at some
// sequence and then everything after it that its filter passes, or, resuming, exactly
// what followed the sequence that it names. Where it can not resume, a gap comes before
// the snapshot. Package queue says what may be conflated, what may be dropped, and that
// everything else arrives or the subscription ends with mihf.ErrSlow.
//
// An attachment has a mailbox of its own: hints of its flows wait there, whatever else is
// published, up to [Config.Mailbox] and eight more for each flow; one more ends it with
// mihf.ErrSlow.
//
// # Who waits for whom
//
// Nobody waits for a subscriber: it reads from the shared log at its own pace, and while
// it sleeps the loop reads for it. Observe waits only while the loop has [Config.Inputs]
// observations before it. A handler registered with [Broker.Handle] runs in the loop: it
// must not block, and of the broker's and its feeds' methods it may call only the cancel
// functions of handlers, [Broker.Now], [Broker.Node], [Broker.Boot] and the Close of a
// feed.
//
// # Ownership
//
// The loop of [Broker.Run] owns the engine, the lists of feeds, handlers and recorders,
// and the attachments' tables. While its goroutine sleeps, who calls Observe takes its
// turn for one step, so that the way from a sensor to a transport has one switch of
// goroutines less; requests and WatchPeers always run in the goroutine of Run. The log is
// guarded by one lock: the loop writes, subscribers read. A mailbox has its own.
//
// # Limits
//
// The number of subscriptions, attachments, recorders and flows is bounded, and so are the
// bytes of snapshots that were not read; each caller has a share of these, so that one
// cannot take what the others need. A subscriber is closed as
// slow by what it has not looked at, whether its filter passes it or not. A burst of more
// than [Config.Replay] events at once ends all subscriptions, one of more than
// [Config.Hints] hints those that follow hints; neither ends an attachment.
//
// When Run ends, frozen flows are thawed to recovery; subscribers and attachments read
// what is left and then get mihf.ErrClosed. Their Done is closed then, so a front whose
// peer reads nothing needs a limit of its own for how long it waits.
package broker
