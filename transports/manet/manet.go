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
//   - The nodes of the path density protocol ([Density]) come to the same shares as the
//     central algorithm, within two refreshes of the last change; with half of all
//     datagrams lost they keep them nearly all the time. No clock has to be right.
//   - A flow is forgotten [Hold] after its source last spoke for it, in the whole network.
//   - What is malformed, replayed or, where there is a key, not signed with it, changes
//     nothing and is counted. What others can make a node hold is bounded.
//   - A connection over three hops costs about 1 kbit/s, headers with it.
//
// # Limits
//
// A Network is one view of the air, a Density one node; each is used by one goroutine.
// What a full region carries in bit/s differs from flow to flow and is given to [Limit].
// The protocol takes it that who is heard also hears, and without a key it believes what
// any neighbour says.
package manet
