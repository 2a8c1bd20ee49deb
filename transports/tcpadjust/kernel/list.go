// SPDX-License-Identifier: (GPL-2.0-only OR MIT)

package kernel

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/cilium/ebpf/asm"
)

var native = binary.NativeEndian

// A record is what the iterator writes of a socket, from its begin.
const (
	recCookie  = 0
	recFamily  = 8  // half
	recSport   = 10 // half, of this host
	recDport   = 12 // half, of the network
	recState   = 14 // half
	recDevice  = 16
	recSrc     = 20
	recDst     = 36
	recWords   = 52  // one a member of words
	recAcked   = 112 // double words from here on
	recGot     = 120
	recPacing  = 128
	recUID     = 136
	recordSize = 144
)

// words are the members of a tcp_sock, of a word each, from recWords on.
func words(l *layout) []int16 {
	t := func(path ...string) int16 { return l.at("tcp_sock", path...) }
	return []int16{
		t("snd_cwnd"), t("snd_ssthresh"), t("snd_cwnd_clamp"), t("mss_cache"), t("srtt_us"),
		t("rtt_min") + 4, t("rcv_rtt_est", "rtt_us"), t("packets_out"), t("lost_out"), t("rcv_nxt"),
		t("snd_una"), t("snd_nxt"), t("snd_wnd"), t("delivered"), t("total_retrans"),
	}
}

// listProgram is the iterator that writes a record of each socket.
func listProgram(l *layout) asm.Instructions {
	const base = -recordSize
	common := func(to int16, size asm.Size, path ...string) asm.Instructions {
		return asm.Instructions{
			asm.LoadMem(asm.R1, rCommon, l.at("sock_common", path...), size),
			asm.StoreMem(asm.RFP, base+to, asm.R1, size),
		}
	}
	p := established(l)
	p = append(p, tcpSock()...)
	p = append(p, asm.LoadMem(asm.R1, asm.RFP, slotCookie, asm.DWord), asm.StoreMem(asm.RFP, base+recCookie, asm.R1, asm.DWord))
	p = append(p, common(recFamily, asm.Half, "skc_family")...)
	p = append(p, common(recSport, asm.Half, "skc_num")...)
	p = append(p, common(recDport, asm.Half, "skc_dport")...)
	p = append(p,
		asm.LoadMem(asm.R1, rCommon, l.at("sock_common", "skc_state"), asm.Byte),
		asm.StoreMem(asm.RFP, base+recState, asm.R1, asm.Half))
	p = append(p, addresses(l, base)...)
	for i, offset := range words(l) {
		p = append(p, asm.LoadMem(asm.R1, rTCP, offset, asm.Word), asm.StoreMem(asm.RFP, int16(base+recWords+4*i), asm.R1, asm.Word)) //nolint:gosec // small
	}
	for to, offset := range map[int16]int16{
		recAcked: l.at("tcp_sock", "bytes_acked"), recGot: l.at("tcp_sock", "bytes_received"), recPacing: l.at("sock", "sk_max_pacing_rate"),
	} {
		p = append(p, asm.LoadMem(asm.R1, rTCP, offset, asm.DWord), asm.StoreMem(asm.RFP, base+to, asm.R1, asm.DWord))
	}
	p = append(p,
		asm.LoadMem(asm.R1, rTCP, l.at("sock", "sk_uid"), asm.Word), asm.StoreMem(asm.RFP, base+recUID, asm.R1, asm.Word),
		asm.StoreImm(asm.RFP, base+recUID+4, 0, asm.Word),
		asm.StoreImm(asm.RFP, base+recDevice, 0, asm.Word),
		asm.LoadMem(asm.R1, rTCP, l.at("sock", "sk_dst_cache"), asm.DWord), asm.JEq.Imm(asm.R1, 0, "write"),
		asm.LoadMem(asm.R1, asm.R1, l.at("dst_entry", "dev"), asm.DWord), asm.JEq.Imm(asm.R1, 0, "write"),
		asm.LoadMem(asm.R1, asm.R1, l.at("net_device", "ifindex"), asm.Word),
		asm.StoreMem(asm.RFP, base+recDevice, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, rContext, l.at("bpf_iter__tcp", "meta"), asm.DWord).WithSymbol("write"),
		asm.LoadMem(asm.R1, asm.R1, l.at("bpf_iter_meta", "seq"), asm.DWord),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, base), asm.Mov.Imm(asm.R3, recordSize), asm.FnSeqWrite.Call())
	return append(p, exit()...)
}

// addresses copies those of either family; of IPv4 the first word is all.
func addresses(l *layout, base int16) asm.Instructions {
	p := asm.Instructions{
		asm.LoadMem(asm.R0, rCommon, l.at("sock_common", "skc_family"), asm.Half),
		asm.JEq.Imm(asm.R0, familyIPv6, "ipv6"),
	}
	for i := int16(4); i < 16; i += 4 {
		p = append(p, asm.StoreImm(asm.RFP, base+recSrc+i, 0, asm.Word), asm.StoreImm(asm.RFP, base+recDst+i, 0, asm.Word))
	}
	word := func(from, to int16) {
		p = append(p, asm.LoadMem(asm.R1, rCommon, from, asm.Word), asm.StoreMem(asm.RFP, base+to, asm.R1, asm.Word))
	}
	word(l.at("sock_common", "skc_rcv_saddr"), recSrc)
	word(l.at("sock_common", "skc_daddr"), recDst)
	p = append(p, asm.Ja.Label("addressed"), asm.Mov.Imm(asm.R0, 0).WithSymbol("ipv6"))
	for i := int16(0); i < 16; i += 4 {
		word(l.at("sock_common", "skc_v6_rcv_saddr")+i, recSrc+i)
		word(l.at("sock_common", "skc_v6_daddr")+i, recDst+i)
	}
	return append(p, asm.Mov.Imm(asm.R0, 0).WithSymbol("addressed"))
}

const familyIPv6 = 10 // AF_INET6

// decode reads a record; false where it is none.
func decode(b []byte) (Socket, bool) {
	if len(b) < recordSize {
		return Socket{}, false
	}
	word := func(i int) uint32 { return native.Uint32(b[recWords+4*i:]) }
	µs := func(u uint32) time.Duration { return time.Duration(u) * time.Microsecond }
	six := native.Uint16(b[recFamily:]) == familyIPv6
	return Socket{
		Cookie: native.Uint64(b[recCookie:]),
		Local:  netip.AddrPortFrom(ip(b[recSrc:], six), native.Uint16(b[recSport:])),
		Remote: netip.AddrPortFrom(ip(b[recDst:], six), binary.BigEndian.Uint16(b[recDport:])),
		State:  uint8(native.Uint16(b[recState:])), //nolint:gosec // it was an octet
		Device: int(native.Uint32(b[recDevice:])),
		Cwnd:   word(0), Ssthresh: word(1), Clamp: word(2), MSS: word(3), SRTT: µs(word(4) >> 3),
		MinRTT: µs(word(5)), RcvRTT: µs(word(6) >> 3), PacketsOut: word(7), LostOut: word(8), RcvNxt: word(9),
		SndUna: word(10), SndNxt: word(11), SndWnd: word(12), Delivered: word(13), Retransmitted: word(14),
		BytesAcked: native.Uint64(b[recAcked:]), BytesReceived: native.Uint64(b[recGot:]),
		PacingBPS: bits(native.Uint64(b[recPacing:])), UID: native.Uint32(b[recUID:]),
	}, true
}

func ip(b []byte, six bool) netip.Addr {
	if !six {
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	return netip.AddrFrom16([16]byte(b[:16])).Unmap()
}

// bits makes bit/s of the kernel's octets a second; the largest is no limit.
func bits(octets uint64) uint64 {
	if octets >= Unpaced/8 {
		return Unpaced
	}
	return octets * 8
}
