// Package manet shares the air of a multihop radio network among its flows, max-min
// fair, and turns a share into the rate at which a flow's source may send.
//
// It is the space-load model of Osipov and Tschudin ("TCP-Friendly Bandwidth Sharing in
// Mobile Ad Hoc Networks", EURASIP JWCN 2007): an L-region is what one node hears at the
// basic rate; an association is a flow with all nodes that carry it; the load of a region
// (C-load) is what all associations inside it may use together, and is 1.
//
// # Guarantees
//
//   - An allocation is feasible: the shares in a region never exceed 1 by more than
//     rounding.
//   - It is max-min fair: each flow has its demand, or is in a region that is full and in
//     which no flow has more than it.
//   - [Network.Allocate] after any number of changes gives the same shares, bit by bit,
//     as the same network built anew, whatever the order of the changes; it looks only at
//     what is connected to a change.
//   - An allocation costs O(m log r) for m memberships of flows in r regions.
//
// # Limits
//
// A Network is one view of the air, used by one goroutine; how nodes come to equal views
// is not its matter. What a full region carries in bit/s differs from flow to flow and is
// given to [Limit].
package manet
