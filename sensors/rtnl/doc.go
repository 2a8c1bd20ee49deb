// Package rtnl is the sensor for links, addresses, default routes and routes to watched
// peers, by rtnetlink. It needs no capability.
//
// # Guarantees
//
//   - A message of the kernel is only a reason to look: what is published is the
//     difference between what was read last and what is read now. A repeated message, or
//     one that changes lifetimes only, gives no observation.
//   - Links are known by their ifindex. A rename, also a swap of two names, changes the
//     name of a link and nothing else; a device that comes back gets the same id.
//   - A change of a link's state is read when its message comes, at most 10 ms later when
//     others came just before, 25 ms in a flood of messages without a change; default
//     routes, egress and peers follow 10 ms later, as long as reading them is quick (see
//     Limits).
//   - Lost messages (the socket overflowed), a failed socket and a suspend lead to a
//     complete reading, whose difference is published, and then mihf.ObsResync. Every 30 s
//     everything is read in any case, because the kernel drops some routes in silence.
//   - A dump that was interrupted is repeated up to five times; from an incomplete one
//     nothing is taken to be removed.
//   - Messages about routes that lead neither to the outside nor to a watched peer are
//     dropped by the kernel, through a filter on the socket, and cost nothing here.
//     Nothing is kept of such routes.
//   - A malformed message is counted and skipped.
//
// # Limits
//
//   - A change that is undone before it was looked at is not seen.
//   - A virtual link that appears is published when it is [Options.Settle] old, or at once
//     when a default route, the egress or a peer leads there. A port of a bridge or bond
//     is published only if it is hardware or has an address. The loopback never is.
//   - Where 960 links are published, further virtual ones without traffic wait until
//     others are gone; the sensor is degraded meanwhile.
//   - Default routes can only be found by reading all routes of the kernel: where there
//     are 100,000 this takes some 30 ms each time (when a default route or the state of a
//     link has changed, and every 30 s). The sensor rests four times as long as the reading
//     took, so that this never takes more than a fifth of a core. What the kernel chooses
//     for the outside and for peers is asked for directly and does not wait for it.
//   - Wi-Fi and mobile links are told from Ethernet by sysfs, which shows one namespace
//     only: in another one ([Options.Netns]) they are taken for Ethernet or other.
//   - A peer with a link-local address is looked up without its zone.
//   - Linux 5.6 is needed for the permanent hardware address; before, the current one is
//     used.
package rtnl
