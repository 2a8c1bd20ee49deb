// Package link is a link in user space, with the rate, delay, loss and queue that it is told
// to have, and outages when it is told to have them. It stands where the kernel's netem would.
//
//	u, err := link.ListenUDP(link.UDPConfig{Far: server, Up: conditions, Down: conditions})
//	go u.Run(ctx)               // what clients send to u.Near() goes over the link to server
//
//	t, err := link.OpenTUN(link.TUNConfig{
//		Near: link.End{NS: a.Handle, Name: "lnk0"}, Far: link.End{NS: b.Handle, Name: "lnk0"},
//		Up: conditions, Down: conditions,
//	})
//	go t.Run(ctx)               // addresses on both ends: kernel TCP runs through it
//
//	u.Change(link.Both, func(c *link.Conditions) { c.RateBPS /= 2 })  // while it runs
//	go u.Play(ctx, link.Outages(link.Blackout, time.Minute, 2*time.Second))
//
// [Line] is one direction and decides without clock or socket, so that a simulation uses it
// too. [Link] is both, with goroutines; [UDP] and [TUN] are its two faces. Up is from the near
// end to the far one.
//
// A packet waits in the queue, is transmitted at the line's rate, is then lost or flies for the
// delay, and comes out in the order of its coming in.
//
// Guarantees:
//
//   - A packet comes out of a Line at the nanosecond that its conditions say, whenever the Line
//     is asked; the same seed and the same packets at the same moments give the same losses.
//   - The queue drops what comes when it is full, and nothing else. The packet in transmission
//     is not in it. A changed rate holds for what is left of that packet.
//   - An outage takes no packet that is in flight. In a [Blackout] the transmitter sends into
//     the void; in a [Stall] it stands, the queue with it.
//   - Order is kept when the delay shrinks: a packet leaves with the one before it at the earliest.
//   - Each packet is counted once, by what became of it. Nothing grows without bound.
//
// Limits: a face is as punctual as the scheduler, typically within 0.1 ms on an idle machine; what
// is due is given out in one go then, so that rates are kept. No jitter, duplicates, corruption
// or marks. Each packet costs two system calls. A TUN end disappears with its link.
package link
