package rtnl

import (
	"encoding/binary"
	"math"
	"net/netip"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// maxFilterWords is how many peers a family may have for the kernel to sort out the
// routes of the others; with more, all routes are sorted out by [watchSet.covers].
const maxFilterWords = 64

// Offsets in a netlink message that carries a route.
const (
	offType   = 4
	offFamily = unix.SizeofNlMsghdr
	offBits   = unix.SizeofNlMsghdr + 1
	offAttrs  = unix.SizeofNlMsghdr + unix.SizeofRtMsg
)

const scratchDst = 0

var (
	accept = bpf.RetConstant{Val: math.MaxUint32}
	drop   = bpf.RetConstant{Val: 0}
)

// routeFilter is a socket filter by which the kernel drops route messages before they
// cost anything: it accepts default routes, routes that could cover a watched address
// (by the first 32 bits, so sometimes more), and everything that is not a route.
func routeFilter(w *watchSet) []bpf.Instruction {
	v4, v6 := firstWords(w.all)
	four := familyFilter(v4, []bpf.Instruction{
		bpf.LoadConstant{Dst: bpf.RegA, Val: 32},
		bpf.ALUOpX{Op: bpf.ALUOpSub},
	})
	six := familyFilter(v6, []bpf.Instruction{ // of a prefix longer than 32 bits the first 32 are compared
		bpf.TXA{},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: 32, SkipFalse: 1},
		bpf.LoadConstant{Dst: bpf.RegA, Val: 32},
		bpf.TAX{},
		bpf.LoadConstant{Dst: bpf.RegA, Val: 32},
		bpf.ALUOpX{Op: bpf.ALUOpSub},
	})
	head := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offType, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: wire16(unix.RTM_NEWROUTE), SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: wire16(unix.RTM_DELROUTE), SkipTrue: 1},
		accept,
		bpf.LoadAbsolute{Off: offBits, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1},
		accept, // a default route
		bpf.LoadAbsolute{Off: offFamily, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 2},
		accept,
		bpf.Jump{Skip: 1},
		bpf.Jump{Skip: uint32(len(four))},
	}
	return slices.Concat(head, four, six)
}

// familyFilter compares the destination with each word, under the prefix length that
// shift (from X, into A) turns into the number of bits to leave out.
func familyFilter(words []uint32, shift []bpf.Instruction) []bpf.Instruction {
	if len(words) > maxFilterWords {
		return []bpf.Instruction{accept}
	}
	out := []bpf.Instruction{
		bpf.LoadConstant{Dst: bpf.RegA, Val: offAttrs},
		bpf.LoadConstant{Dst: bpf.RegX, Val: unix.RTA_DST},
		bpf.LoadExtension{Num: bpf.ExtNetlinkAttr},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1},
		accept, // no destination: leave it to the decoder
		bpf.TAX{},
		bpf.LoadIndirect{Off: unix.SizeofRtAttr, Size: 4},
		bpf.StoreScratch{Src: bpf.RegA, N: scratchDst},
		bpf.LoadAbsolute{Off: offBits, Size: 1},
		bpf.TAX{},
	}
	out = append(out, shift...)
	out = append(out, bpf.TAX{})
	for _, word := range words {
		out = append(out,
			bpf.LoadScratch{Dst: bpf.RegA, N: scratchDst},
			bpf.ALUOpConstant{Op: bpf.ALUOpXor, Val: word},
			bpf.ALUOpX{Op: bpf.ALUOpShiftRight},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1},
			accept)
	}
	return append(out, drop)
}

// wire16 is a number in the kernel's byte order as the filter reads it.
func wire16(v uint16) uint32 {
	var b [2]byte
	order.PutUint16(b[:], v)
	return uint32(binary.BigEndian.Uint16(b[:]))
}

// firstWords returns the first 32 bits of the addresses of each family, each once.
func firstWords(addrs []netip.Addr) (v4, v6 []uint32) {
	for _, a := range addrs {
		word := binary.BigEndian.Uint32(a.AsSlice())
		if a.Is4() {
			v4 = append(v4, word)
		} else {
			v6 = append(v6, word)
		}
	}
	slices.Sort(v4)
	slices.Sort(v6)
	return slices.Compact(v4), slices.Compact(v6)
}
