// Package udpencap carries DCCP over UDP (RFC 6773): without privileges, and through NATs.
//
//	c, err := udpencap.Dial(ctx, "192.0.2.1:6511", dccpnet.Options{Conn: dccp.Config{DstPort: 5001}})
//	l, err := udpencap.Listen("[::]:6511", dccpnet.Options{Conn: dccp.Config{SrcPort: 5001}})
//
// # Guarantees
//
//   - Packets are sent as they are after a UDP header, with the DCCP checksum 0 and UDP's
//     own in force; the DCCP checksum of received packets is ignored (section 3.4).
//   - Connections are told apart by both pairs of ports (section 3.8).
//   - Packets are not fragmented.
//   - Many packets are sent and received with one system call, where the kernel has UDP
//     segmentation (4.18) and its receiving counterpart (5.0) as one of up to 64; nothing
//     is allocated for a packet.
//
// # Limits
//
// ICMP errors are not read: a Dial to where nobody listens ends with its context.
package udpencap
