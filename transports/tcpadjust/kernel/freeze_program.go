// SPDX-License-Identifier: (GPL-2.0-only OR MIT)

package kernel

import (
	"encoding/binary"
	"net/netip"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// The key of a frozen connection: addresses of 16 octets, of which IPv4 has the first four,
// and ports, as in its packets; and the family.
const (
	keySrc    = 0
	keyDst    = 16
	keySport  = 32
	keyDport  = 34
	keyFamily = 36
	frozenKey = 40

	frozenUntil = 0 // ns of CLOCK_MONOTONIC
	frozenHits  = 8 // word
	frozenSize  = 16
)

func key(local, remote netip.AddrPort) []byte {
	b := make([]byte, frozenKey)
	src, dst := local.Addr().Unmap(), remote.Addr().Unmap()
	copy(b[keySrc:], src.AsSlice())
	copy(b[keyDst:], dst.AsSlice())
	binary.BigEndian.PutUint16(b[keySport:], local.Port())
	binary.BigEndian.PutUint16(b[keyDport:], remote.Port())
	family := uint32(unix.AF_INET)
	if src.Is6() {
		family = unix.AF_INET6
	}
	native.PutUint32(b[keyFamily:], family)
	return b
}

// What the classifier has on its stack.
const (
	stackKey    = -40
	stackIP     = -80  // 40 octets
	stackTCP    = -104 // 20 octets
	stackWindow = -112
	skbProtocol = 16 // in struct __sk_buff
	tcpHeader   = 20
	next        = -1 // TCX_NEXT, and TC_ACT_UNSPEC: others decide
)

// big is a number of 16 bits as it is in a packet.
func big(v uint16) int32 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return int32(native.Uint16(b[:]))
}

// load copies octets of the packet to the stack; the offset is in R2.
func load(to, size int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, to), asm.Mov.Imm(asm.R4, size),
		asm.FnSkbLoadBytes.Call(), asm.JNE.Imm(asm.R0, 0, "out"),
	}
}

// freezeProgram is the classifier. header is how many octets the link layer has. R6 is the
// packet, R7 where its TCP header begins, R8 the entry of its connection.
func freezeProgram(flows int, header int32) asm.Instructions {
	p := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1), asm.Mov.Imm(asm.R0, 0)}
	for i := int16(0); i < frozenKey; i += 8 {
		p = append(p, asm.StoreMem(asm.RFP, stackKey+i, asm.R0, asm.DWord))
	}
	p = append(p,
		asm.LoadMem(asm.R0, asm.R6, skbProtocol, asm.Word),
		asm.JEq.Imm(asm.R0, big(unix.ETH_P_IP), "ipv4"), asm.JNE.Imm(asm.R0, big(unix.ETH_P_IPV6), "out"))
	p = append(p, ipv6(header)...)
	p = append(p, labelled("ipv4", ipv4(header))...)
	p = append(p, labelled("tcp", asm.Instructions{asm.Mov.Reg(asm.R2, asm.R7)})...)
	p = append(p, load(stackTCP, tcpHeader)...)
	p = append(p,
		asm.LoadMem(asm.R0, asm.RFP, stackTCP+13, asm.Byte), asm.And.Imm(asm.R0, 0x16), // ACK, and neither SYN nor RST
		asm.JNE.Imm(asm.R0, 0x10, "out"),
		asm.LoadMem(asm.R0, asm.RFP, stackTCP, asm.Word), asm.StoreMem(asm.RFP, stackKey+keySport, asm.R0, asm.Word),
		asm.LoadMapPtr(asm.R1, flows), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackKey),
		asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, "out"), asm.Mov.Reg(asm.R8, asm.R0),
		asm.FnKtimeGetNs.Call(), asm.LoadMem(asm.R1, asm.R8, frozenUntil, asm.DWord), asm.JGT.Reg(asm.R0, asm.R1, "out"))
	p = append(p, closeWindow()...)
	return append(p, asm.Mov.Imm(asm.R0, next).WithSymbol("out"), asm.Return())
}

func ipv4(header int32) asm.Instructions {
	p := append(asm.Instructions{asm.Mov.Imm(asm.R2, header)}, load(stackIP, 20)...)
	p = append(p,
		asm.LoadMem(asm.R0, asm.RFP, stackIP+9, asm.Byte), asm.JNE.Imm(asm.R0, unix.IPPROTO_TCP, "out"),
		asm.LoadMem(asm.R0, asm.RFP, stackIP+6, asm.Half), asm.And.Imm(asm.R0, big(0x1fff)), asm.JNE.Imm(asm.R0, 0, "out"), // a later fragment
		asm.LoadMem(asm.R7, asm.RFP, stackIP, asm.Byte), asm.And.Imm(asm.R7, 0xf), asm.LSh.Imm(asm.R7, 2), asm.Add.Imm(asm.R7, header))
	p = append(p, toKey(12, keySrc, 4)...)
	p = append(p, toKey(16, keyDst, 4)...)
	return append(p, asm.Mov.Imm(asm.R0, unix.AF_INET), asm.StoreMem(asm.RFP, stackKey+keyFamily, asm.R0, asm.Word))
}

func ipv6(header int32) asm.Instructions {
	p := append(asm.Instructions{asm.Mov.Imm(asm.R2, header)}, load(stackIP, 40)...)
	p = append(p, asm.LoadMem(asm.R0, asm.RFP, stackIP+6, asm.Byte), asm.JNE.Imm(asm.R0, unix.IPPROTO_TCP, "out"))
	p = append(p, toKey(8, keySrc, 16)...)
	p = append(p, toKey(24, keyDst, 16)...)
	return append(p, asm.Mov.Imm(asm.R0, unix.AF_INET6), asm.StoreMem(asm.RFP, stackKey+keyFamily, asm.R0, asm.Word),
		asm.Mov.Imm(asm.R7, header+40), asm.Ja.Label("tcp"))
}

func toKey(from, to, size int16) (p asm.Instructions) {
	for i := int16(0); i < size; i += 4 {
		p = append(p, asm.LoadMem(asm.R0, asm.RFP, stackIP+from+i, asm.Word), asm.StoreMem(asm.RFP, stackKey+to+i, asm.R0, asm.Word))
	}
	return p
}

// closeWindow makes the window of the packet 0, and its checksum right.
func closeWindow() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R3, asm.RFP, stackTCP+14, asm.Half), asm.JEq.Imm(asm.R3, 0, "out"),
		asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Reg(asm.R2, asm.R7), asm.Add.Imm(asm.R2, 16),
		asm.Mov.Imm(asm.R4, 0), asm.Mov.Imm(asm.R5, 2), asm.FnL4CsumReplace.Call(),
		asm.StoreImm(asm.RFP, stackWindow, 0, asm.Word),
		asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Reg(asm.R2, asm.R7), asm.Add.Imm(asm.R2, 14),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, stackWindow), asm.Mov.Imm(asm.R4, 2), asm.Mov.Imm(asm.R5, 0),
		asm.FnSkbStoreBytes.Call(),
		asm.Add.Imm(asm.R8, frozenHits), asm.Mov.Imm(asm.R1, 1), asm.StoreXAdd(asm.R8, asm.R1, asm.Word),
	}
}
