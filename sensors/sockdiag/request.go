package sockdiag

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// What linux/inet_diag.h has and the libraries do not.
const (
	msgByFamily  = 20 // SOCK_DIAG_BY_FAMILY
	attrBytecode = 1  // INET_DIAG_REQ_BYTECODE
	attrInfo     = 2  // INET_DIAG_INFO

	opJump    = 1 // INET_DIAG_BC_JMP
	opSource  = 7 // INET_DIAG_BC_S_COND
	opDest    = 8 // INET_DIAG_BC_D_COND
	opSize    = 4 // struct inet_diag_bc_op
	condSize  = 8 // struct inet_diag_hostcond without its address
	reqSize   = 56
	anyPort   = -1
	attrAlign = 4
)

// states are those in which data can go either way. The numbers are the kernel's.
const states = 1<<unix.BPF_TCP_ESTABLISHED | 1<<unix.BPF_TCP_FIN_WAIT1 | 1<<unix.BPF_TCP_CLOSE_WAIT

var native = binary.NativeEndian

// endpoint is one condition on a socket: an address, a port, or both. What is not set matches all.
type endpoint struct {
	addr netip.Addr
	port uint16
}

func (e endpoint) any() bool { return !e.addr.IsValid() && e.port == 0 }

// alternative is a condition on both ends of a socket.
type alternative struct{ local, remote endpoint }

// maxAlternatives bounds what the kernel compares with each socket.
const maxAlternatives = 256

// request asks for the sockets of an address family that meet one of the alternatives; nil: for all.
func request(family uint8, filter []alternative) []byte {
	b := make([]byte, reqSize, reqSize+opSize+len(filter)*2*(opSize+condSize+16))
	b[0], b[1], b[2] = family, unix.IPPROTO_TCP, 1<<(attrInfo-1)
	native.PutUint32(b[4:], states)
	code := program(filter)
	if len(code) == 0 {
		return b
	}
	b = native.AppendUint16(b, uint16(opSize+len(code))) //nolint:gosec // maxAlternatives bounds it below 16 KiB
	b = native.AppendUint16(b, attrBytecode)
	return append(b, code...)
}

// program is the kernel's filter: it accepts by reaching the end, refuses by going beyond. Each
// alternative is its conditions, which lead to the next alternative where they fail, and then a jump
// to the end.
func program(filter []alternative) []byte {
	if len(filter) == 0 || len(filter) > maxAlternatives {
		return nil
	}
	var parts [][]byte
	total := 0
	for i, a := range filter {
		if a.local.any() && a.remote.any() {
			return nil
		}
		part := a.code()
		if i < len(filter)-1 {
			part = append(part, opJump, opSize, 0, 0)
		}
		parts = append(parts, part)
		total += len(part)
	}
	code := make([]byte, 0, total)
	for i, part := range parts {
		last := i == len(parts)-1
		link(part, last)
		code = append(code, part...)
		if !last {
			native.PutUint16(code[len(code)-2:], uint16(total-len(code)+opSize)) //nolint:gosec // see request
		}
	}
	return code
}

// code is the conditions of an alternative; where they lead is not set yet.
func (a alternative) code() []byte {
	return append(a.local.code(opSource), a.remote.code(opDest)...)
}

func (e endpoint) code(op byte) []byte {
	if e.any() {
		return nil
	}
	var addr []byte
	family := byte(unix.AF_UNSPEC)
	if e.addr.IsValid() {
		addr = e.addr.AsSlice()
		family = unix.AF_INET6
		if e.addr.Is4() {
			family = unix.AF_INET
		}
	}
	size := opSize + condSize + len(addr)
	b := make([]byte, opSize+condSize, size)
	b[0], b[1] = op, byte(size)
	b[4], b[5] = family, byte(8*len(addr))
	port := int32(anyPort)
	if e.port != 0 {
		port = int32(e.port)
	}
	native.PutUint32(b[8:], uint32(port)) //nolint:gosec // an int of C
	return append(b, addr...)
}

// link has the conditions of an alternative lead to what follows it where they fail: beyond the end if it is the last.
func link(part []byte, last bool) {
	end := len(part)
	if last {
		end += opSize
	}
	for at := 0; at < len(part); at += int(part[at+1]) {
		if part[at] != opJump {
			native.PutUint16(part[at+2:], uint16(end-at)) //nolint:gosec // two conditions
		}
	}
}
