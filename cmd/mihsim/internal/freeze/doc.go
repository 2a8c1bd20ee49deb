// Package freeze holds the experiments on Freeze-DCCP/TFRC: the model of a disconnection against
// the simulation, what a hand-over costs plain TFRC and Freeze, how fair they are to TCP, and
// what a viewer sees.
//
// The flows are the machines of transports/tfrc on the bed of integration/sim. What the paper
// leaves open stands in parameters.toml, which is part of the program.
//
// # What is measured, and how
//
//   - Frozen flows get their Freeze one of their own round-trip times before the break, queues
//     included, and the Unfreeze shortly after the link is back. With LCI the Unfreeze brings
//     the new link's capacity and round-trip time without queue.
//   - Loss counts packets that the break took and that were sent since the last nofeedback timer
//     was started; lost_break counts all that it took, also those sent before.
//   - The rate to be reached is the mean rate received in the stationary state of the new link,
//     of runs of its own; so is the round-trip time in the length of a break.
//   - The allowed rate of a frozen sender is 0.
//   - Variants that are compared see the same seeds, and so the same moments of their breaks.
package freeze
