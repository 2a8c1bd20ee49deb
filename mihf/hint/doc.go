// Package hint turns one forecast a link into one decision a flow, each at its own
// moment: when to freeze, how long, and when and onto what to thaw.
//
// # The rule
//
// A flow needs its lead before the loss. Data that arrives through the failing link is
// stopped at the far sender, so receiving needs one RTT (queue included) plus the
// dispatch margin; sending needs the local queue's drain time plus the margin, which is
// measured for each owner's transports. The next
// chance to freeze is the next evaluation of the forecast plus the lead. The flow is
// frozen when
//
//	P(loss before the next chance) × cost of a miss >
//	    P(no loss before the prediction expires) × cost of a needless freeze
//
// and when waiting for the next evaluation would also cost more than freezing one
// evaluation too early: the first side above exceeds P(no loss before the next chance) ×
// the evaluation interval. Without the second condition a loss that is certain but far
// away would freeze at once.
//
// # Guarantees
//
//   - Every Freeze has a lease, is renewed at half of it while the reason stands, and never
//     reaches past the flow's MaxFreeze.
//   - Every Freeze (its renewals included) is followed by exactly one Unfreeze or Abandon, as
//     long as the flow stays registered.
//   - Hints of one flow have rising epochs.
//   - A flow is frozen by predictions that did not come true for at most
//     [Config.BudgetShare] of any [Config.BudgetWindow], the freeze in progress included,
//     and after each of them not again for a back-off that doubles until one comes true.
//     A freeze is not begun for which the budget is too short to reach the loss.
//   - Flows that did not ask for a late Freeze get nothing at a loss that was not foreseen.
//   - Freeze goes only to flows whose address survives or that rebind; the others get
//     Abandon when the link is lost or, without continuity, handed over.
//   - A deadline is computed from the RTT that the transport states, else from the one that is
//     measured, else from the configured one. Of measured ones a longer RTT counts at once and a
//     shorter one when it has lasted for 3 s; one that differs little changes nothing.
//   - No allocation on the way from a forecast to its Freeze.
//
// # Limits
//
// Pure; used by one goroutine. Which link a flow is on is decided by its owner.
package hint
