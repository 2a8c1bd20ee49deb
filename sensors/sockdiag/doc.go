// Package sockdiag is the sensor for live TCP flows: their RTT, window, delivery rate and
// losses, as the kernel's own TCP has them, by sock_diag. It needs no capability.
//
// # Guarantees
//
//   - Sockets are chosen in the kernel: connections with an address of a link, or, with
//     [Options.RegisteredOnly], those whose 5-tuple was given to [Sensor.Watch]. Others
//     are not read. Loopback addresses belong to no link.
//   - Only what the kernel gave is in a reading. A field that an older kernel's tcp_info lacks,
//     an RTT that was never measured, and a value that cannot be are unknown.
//   - A flow is published when its reading is another than the one published before. A watched
//     one is published within 0.1 s of [Sensor.Watch], if it lives, also if it is idle.
//   - The receiving side's RTT is given only while data arrives: the kernel's estimate is as old as
//     the last data, and counts pauses of the sender.
//   - A reading publishes every watched flow, up to [MaxWatched], and of the others the [MaxOthers] that moved
//     most data; what was left out is counted. At most [MaxSockets] sockets are remembered, and as many watched ones again.
//   - Between two readings the sensor rests fifty times as long as the last one took, so that it
//     never takes more than some 2 % of a core.
//
// # Limits
//
//   - TCP only, and only its connections of the sensor's network namespace.
//   - A flow whose socket is bound to a link is given to that link; of a link-local address, or one that
//     several links have, the link is otherwise not known.
//   - The kernel measures an RTT from data that it sends. Of a connection that only receives,
//     RTT is that of its beginning, and ReceiveRTT what matters.
//   - Beyond 256 addresses or tuples the kernel is asked for all connections.
//   - github.com/vishvananda/netlink reads sockets too, but cannot filter, takes a missing field for 0,
//     and finds "app limited" in the wrong bit; so requests and tcp_info are done here.
package sockdiag
