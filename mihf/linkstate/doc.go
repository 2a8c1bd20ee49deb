// Package linkstate turns the observations and forecasts of one link into events.
//
// A [Machine] holds what is known of one link: whether layer 2 is attached, whether its
// paths are usable, its newest parameters with the thresholds set on them, and its one
// open prediction. It is pure: inputs take the time first and append events; Next tells
// when it wants to be woken; Advance does what is due.
//
// # Guarantees
//
//   - Events are differences of states: the same observation again gives no event.
//   - Link_Down comes at once where it is certain, within [Config.Settle] where evidence
//     of a roam may still arrive, and is withheld (at most [Config.RoamWithhold]) only on
//     such evidence: our own side left, or authentication to the same ESS has begun. Where
//     only the carrier went, the radio's word on why is waited for, 250 ms at most, and
//     Settle counts from there.
//     A roam that succeeds is one Link_Handover_Complete and never a Link_Down.
//   - A prediction has exactly one outcome: Link_Down, Link_Handover_Complete,
//     Link_Event_Rollback or Prediction_Expired. At most one is open.
//   - After a prediction that did not come true, a new one within [Config.FlapGuard]
//     needs [Config.GuardThreshold]; if that fails too there is none until the guard ends.
//   - A network-ordered handover is announced once, as Link_Handover_Imminent, and is no
//     prediction of a loss.
//   - A threshold reports once for each crossing: it is armed again only when the value
//     has come back by the hysteresis. An unknown value crosses nothing.
//   - Nobody can take all thresholds of a link: one caller has [Config.MaxThresholdsPerUser]
//     of the [MaxThresholds].
//   - Values end with the attachment from which they were read.
//   - A path is usable only while the link is attached, has a usable source address and
//     a default route of that family.
//
// # Limits
//
// The kernel's choice among links, and routes to single peers, are not looked at here;
// see package route.
package linkstate
