// SPDX-License-Identifier: (GPL-2.0-only OR MIT)

package kernel

import (
	"fmt"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// License is what the programs are loaded under; the kernel refuses the helpers that they
// call to others.
const License = "Dual MIT/GPL"

// Options of setsockopt that a BPF program may set, and x/sys does not have.
const (
	tcpClamp   = 1002 // TCP_BPF_SNDCWND_CLAMP, segments
	tcpMinRTO  = 1004 // TCP_BPF_RTO_MIN, µs
	tcpMaxRTO  = 44   // TCP_RTO_MAX_MS
	ccNameSize = 16   // TCP_CA_NAME_MAX
)

// What the value of a map of orders holds, and where: what is asked for, then what became
// of it.
const (
	orderFlags     = 0
	orderCwnd      = 4
	orderSsthresh  = 8
	orderAcks      = 12
	orderClamp     = 16
	orderMinRTO    = 20
	orderMaxRTO    = 24
	orderPacing    = 28
	orderDone      = 32
	orderCwnd0     = 36
	orderSsthresh0 = 40
	orderCwnd1     = 44
	orderSsthresh1 = 48
	orderClamp0    = 52
	orderReturns   = 56 // one word a refusal; see refusals
	orderPacing0   = 80
	orderSize      = 88

	flagKick   = 1
	flagPush   = 2
	flagPacing = 4
)

// The words from orderReturns on.
const (
	returnKick = orderReturns + 4*iota
	returnClamp
	returnMinRTO
	returnMaxRTO
	returnPacing
	returnPush
)

// notCalled is a kick whose init didn't run, although the kernel said that it switched.
const notCalled = -1000

// Where the kick's init finds its order: one at a time.
const (
	kickCwnd     = 0
	kickSsthresh = 4
	kickAcks     = 8
	kickDone     = 12
	kickSize     = 16
)

// Registers that calls leave alone.
const (
	rContext = asm.R6
	rCommon  = asm.R7 // struct sock_common
	rTCP     = asm.R8 // struct tcp_sock
	rOrder   = asm.R9
)

// The stack, from the frame pointer down.
const (
	slotCookie = -8
	slotKey    = -12
	slotValue  = -16
	slotOwn    = -32 // name of the socket's congestion control
	slotKick   = -48 // of ours
)

// established jumps to exit unless the socket is one that carries data.
func established(l *layout) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(rContext, asm.R1),
		asm.LoadMem(rCommon, asm.R1, l.at("bpf_iter__tcp", "sk_common"), asm.DWord),
		asm.JEq.Imm(rCommon, 0, "exit"),
		asm.LoadMem(asm.R0, rCommon, l.at("sock_common", "skc_state"), asm.Byte),
		asm.JEq.Imm(asm.R0, unix.BPF_TCP_ESTABLISHED, "alive"),
		asm.JEq.Imm(asm.R0, unix.BPF_TCP_FIN_WAIT1, "alive"),
		asm.JNE.Imm(asm.R0, unix.BPF_TCP_CLOSE_WAIT, "exit"),
		asm.Mov.Reg(asm.R1, rCommon).WithSymbol("alive"),
		asm.FnGetSocketCookie.Call(),
		asm.StoreMem(asm.RFP, slotCookie, asm.R0, asm.DWord),
	}
}

// tcpSock leaves the tcp_sock in rTCP.
func tcpSock() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, rCommon), asm.FnSkcToTcpSock.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"), asm.Mov.Reg(rTCP, asm.R0),
	}
}

func exit() asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"), asm.Return()}
}

// lookup leaves in R0 the value of the key that is on the stack; none: on to exit.
func lookup(fd int, slot int32) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, fd), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, slot),
		asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, "exit"),
	}
}

func only(fd int) asm.Instructions {
	return append(asm.Instructions{asm.StoreImm(asm.RFP, slotKey, 0, asm.Word)}, lookup(fd, slotKey)...)
}

// text puts a name of a congestion control on the stack.
func text(slot int16, s string) asm.Instructions {
	var b [ccNameSize]byte
	copy(b[:ccNameSize-1], s)
	var out asm.Instructions
	for i := 0; i < ccNameSize; i += 8 {
		out = append(out,
			asm.LoadImm(asm.R1, int64(native.Uint64(b[i:])), asm.DWord), //nolint:gosec // the bits of it
			asm.StoreMem(asm.RFP, slot+int16(i), asm.R1, asm.DWord))
	}
	return out
}

// option calls getsockopt or setsockopt; its answer is in R0.
func option(f asm.BuiltinFunc, level, name, slot, size int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, rTCP), asm.Mov.Imm(asm.R2, level), asm.Mov.Imm(asm.R3, name),
		asm.Mov.Reg(asm.R4, asm.RFP), asm.Add.Imm(asm.R4, slot), asm.Mov.Imm(asm.R5, size), f.Call(),
	}
}

// set sets an option to a word of the order, unless that is 0, and notes the answer.
func set(level, name int32, word, answer int16) asm.Instructions {
	skip := fmt.Sprintf("after %d", word)
	out := asm.Instructions{
		asm.LoadMem(asm.R1, rOrder, word, asm.Word),
		asm.JEq.Imm(asm.R1, 0, skip),
		asm.StoreMem(asm.RFP, slotValue, asm.R1, asm.Word),
	}
	out = append(out, option(asm.FnSetsockopt, level, name, slotValue, 4)...)
	return append(out,
		asm.StoreMem(rOrder, answer, asm.R0, asm.Word),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(skip))
}

// note copies a member of the tcp_sock into the order.
func note(offset, to int16) asm.Instructions {
	return asm.Instructions{asm.LoadMem(asm.R1, rTCP, offset, asm.Word), asm.StoreMem(rOrder, to, asm.R1, asm.Word)}
}

// unlessFlag jumps where the order doesn't have a flag.
func unlessFlag(flag int32, to string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, rOrder, orderFlags, asm.Word), asm.And.Imm(asm.R1, flag), asm.JEq.Imm(asm.R1, 0, to),
	}
}

// applyProgram is the iterator that carries out orders.
func applyProgram(l *layout, orders, current int, kick string) asm.Instructions {
	cwnd, ssthresh := l.at("tcp_sock", "snd_cwnd"), l.at("tcp_sock", "snd_ssthresh")
	p := established(l)
	p = append(p, lookup(orders, slotCookie)...)
	p = append(p, asm.Mov.Reg(rOrder, asm.R0))
	p = append(p, tcpSock()...)
	p = append(p, note(cwnd, orderCwnd0)...)
	p = append(p, note(ssthresh, orderSsthresh0)...)
	p = append(p, note(l.at("tcp_sock", "snd_cwnd_clamp"), orderClamp0)...)
	p = append(p,
		asm.LoadMem(asm.R1, rTCP, l.at("sock", "sk_max_pacing_rate"), asm.DWord),
		asm.StoreMem(rOrder, orderPacing0, asm.R1, asm.DWord))
	p = append(p, pacing()...)
	p = append(p, set(unix.SOL_TCP, tcpClamp, orderClamp, returnClamp)...)
	p = append(p, set(unix.SOL_TCP, tcpMinRTO, orderMinRTO, returnMinRTO)...)
	p = append(p, set(unix.SOL_TCP, tcpMaxRTO, orderMaxRTO, returnMaxRTO)...)
	p = append(p, kickIt(current, kick)...)
	p = append(p, push()...)
	p = append(p, note(cwnd, orderCwnd1)...)
	p = append(p, note(ssthresh, orderSsthresh1)...)
	p = append(p, asm.Mov.Imm(asm.R1, 1), asm.StoreMem(rOrder, orderDone, asm.R1, asm.Word))
	return append(p, exit()...)
}

// pacing sets the rate, of which 0 has no meaning but a flag tells.
func pacing() asm.Instructions {
	p := unlessFlag(flagPacing, "paced")
	p = append(p, asm.LoadMem(asm.R1, rOrder, orderPacing, asm.Word), asm.StoreMem(asm.RFP, slotValue, asm.R1, asm.Word))
	p = append(p, option(asm.FnSetsockopt, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, slotValue, 4)...)
	return append(p, asm.StoreMem(rOrder, returnPacing, asm.R0, asm.Word), asm.Mov.Imm(asm.R0, 0).WithSymbol("paced"))
}

// kickIt switches the socket to the kick and back.
func kickIt(current int, kick string) asm.Instructions {
	p := unlessFlag(flagKick, "kicked")
	p = append(p, only(current)...)
	for from, to := range map[int16]int16{orderCwnd: kickCwnd, orderSsthresh: kickSsthresh, orderAcks: kickAcks} {
		p = append(p, asm.LoadMem(asm.R1, rOrder, from, asm.Word), asm.StoreMem(asm.R0, to, asm.R1, asm.Word))
	}
	p = append(p, asm.StoreImm(asm.R0, kickDone, 0, asm.Word))
	p = append(p, text(slotOwn, "")...)
	p = append(p, option(asm.FnGetsockopt, unix.SOL_TCP, unix.TCP_CONGESTION, slotOwn, ccNameSize)...)
	p = append(p, text(slotKick, kick)...)
	p = append(p, option(asm.FnSetsockopt, unix.SOL_TCP, unix.TCP_CONGESTION, slotKick, ccNameSize)...)
	p = append(p, asm.StoreMem(rOrder, returnKick, asm.R0, asm.Word))
	p = append(p, option(asm.FnSetsockopt, unix.SOL_TCP, unix.TCP_CONGESTION, slotOwn, ccNameSize)...)
	p = append(p, only(current)...)
	return append(p,
		asm.LoadMem(asm.R1, asm.R0, kickDone, asm.Word), asm.JNE.Imm(asm.R1, 0, "kicked"),
		asm.LoadMem(asm.R1, rOrder, returnKick, asm.Word), asm.JNE.Imm(asm.R1, 0, "kicked"),
		asm.Mov.Imm(asm.R1, notCalled), asm.StoreMem(rOrder, returnKick, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("kicked"))
}

// push turns Nagle's algorithm off and, where it was on, on again: what waits goes out.
func push() asm.Instructions {
	p := unlessFlag(flagPush, "pushed")
	p = append(p, asm.StoreImm(asm.RFP, slotOwn, 0, asm.Word))
	p = append(p, option(asm.FnGetsockopt, unix.SOL_TCP, unix.TCP_NODELAY, slotOwn, 4)...)
	p = append(p, asm.StoreImm(asm.RFP, slotValue, 1, asm.Word))
	p = append(p, option(asm.FnSetsockopt, unix.SOL_TCP, unix.TCP_NODELAY, slotValue, 4)...)
	p = append(p, asm.StoreMem(rOrder, returnPush, asm.R0, asm.Word))
	p = append(p, asm.LoadMem(asm.R1, asm.RFP, slotOwn, asm.Word), asm.JNE.Imm(asm.R1, 0, "pushed"))
	p = append(p, option(asm.FnSetsockopt, unix.SOL_TCP, unix.TCP_NODELAY, slotOwn, 4)...)
	return append(p, asm.Mov.Imm(asm.R0, 0).WithSymbol("pushed"))
}

// kickInit is the init of the congestion control that a kicked socket is on for an instant.
func kickInit(l *layout, current int) asm.Instructions {
	p := asm.Instructions{asm.LoadMem(rContext, asm.R1, 0, asm.DWord)}
	p = append(p, only(current)...)
	p = append(p, asm.Mov.Reg(rOrder, asm.R0))
	p = append(p, setMember(l.at("tcp_sock", "snd_cwnd"), kickCwnd, "ssthresh")...)
	p = append(p, labelled("ssthresh", setMember(l.at("tcp_sock", "snd_ssthresh"), kickSsthresh, "acks"))...)
	p = append(p, asm.Mov.Imm(asm.R0, 0).WithSymbol("acks"))
	for i := range int32(3) {
		p = append(p, asm.LoadMem(asm.R1, rOrder, kickAcks, asm.Word), asm.JLE.Imm(asm.R1, i, "done"),
			asm.LoadMem(asm.R2, rContext, l.at("tcp_sock", "rcv_nxt"), asm.Word),
			asm.Mov.Reg(asm.R1, rContext), asm.FnTcpSendAck.Call())
	}
	p = append(p, asm.Mov.Imm(asm.R1, 1).WithSymbol("done"), asm.StoreMem(rOrder, kickDone, asm.R1, asm.Word))
	return append(p, exit()...)
}

// setMember sets a member of the socket to a word of the order, unless that is 0.
func setMember(member, word int16, next string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, rOrder, word, asm.Word), asm.JEq.Imm(asm.R1, 0, next),
		asm.StoreMem(rContext, member, asm.R1, asm.Word),
	}
}

func labelled(label string, p asm.Instructions) asm.Instructions {
	p[0] = p[0].WithSymbol(label)
	return p
}
