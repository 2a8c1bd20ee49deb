package sockdiag

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// socket is one connection as the kernel tells it.
type socket struct {
	cookie uint64 // the kernel's own id of the socket, never used twice
	device int    // that it is bound to; 0: to none
	mihf.FlowReading
}

// Offsets in struct inet_diag_msg.
const (
	msgFamily = 0
	msgPorts  = 4
	msgSource = 8
	msgDest   = 24
	msgDevice = 40
	msgCookie = 44
	msgSize   = 72
)

// flagsAt is where struct tcp_info has its bit fields of delivery rate and Fast Open.
const flagsAt = 7

// appLimited is the bit of delivery_rate_app_limited: C's first bit field, which is the lowest
// bit on little-endian machines and the highest on others.
var appLimited = func() byte {
	if native.Uint16([]byte{1, 0}) == 1 {
		return 1
	}
	return 0x80
}()

var (
	errShort     = errors.New("is too short")
	errFamily    = errors.New("is of neither IPv4 nor IPv6")
	errAttribute = errors.New("has an attribute that does not fit")
)

// decode reads a message of the kernel. rejected counts values that cannot be, which are unknown then.
func decode(b []byte) (s socket, rejected int, err error) {
	if len(b) < msgSize {
		return s, 0, fmt.Errorf("socket of %d octets %w", len(b), errShort)
	}
	local, ok := address(b[msgFamily], b[msgSource:])
	remote, _ := address(b[msgFamily], b[msgDest:])
	if !ok {
		return s, 0, fmt.Errorf("socket of family %d %w", b[msgFamily], errFamily)
	}
	s.Protocol = unix.IPPROTO_TCP
	s.Local = netip.AddrPortFrom(local, binary.BigEndian.Uint16(b[msgPorts:]))
	s.Remote = netip.AddrPortFrom(remote, binary.BigEndian.Uint16(b[msgPorts+2:]))
	s.device = int(native.Uint32(b[msgDevice:]))
	s.cookie = native.Uint64(b[msgCookie:])
	for b = b[msgSize:]; len(b) >= unix.SizeofRtAttr; {
		n := int(native.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			return s, rejected, fmt.Errorf("socket %w: %d octets of %d", errAttribute, n, len(b))
		}
		if native.Uint16(b[2:]) == attrInfo {
			rejected = s.info(b[unix.SizeofRtAttr:n])
		}
		b = b[min((n+attrAlign-1)&^(attrAlign-1), len(b)):]
	}
	return s, rejected, nil
}

func address(family byte, b []byte) (netip.Addr, bool) {
	switch family {
	case unix.AF_INET:
		return netip.AddrFrom4([4]byte(b)), true
	case unix.AF_INET6:
		return netip.AddrFrom16([16]byte(b)).Unmap(), true
	default:
		return netip.Addr{}, false
	}
}

// tcpInfo is a struct tcp_info as long as the kernel made it: it grew over the years.
type tcpInfo []byte

func (t tcpInfo) u32(at uintptr) (uint32, bool) {
	if at+4 > uintptr(len(t)) {
		return 0, false
	}
	return native.Uint32(t[at:]), true
}

func (t tcpInfo) u64(at uintptr) (uint64, bool) {
	if at+8 > uintptr(len(t)) {
		return 0, false
	}
	return native.Uint64(t[at:]), true
}

// count reads a number that is known where the kernel has the field.
func (t tcpInfo) count(at uintptr) (o mihf.Opt[uint64]) {
	if v, ok := t.u64(at); ok {
		o = mihf.Some(v)
	}
	return o
}

func (t tcpInfo) count32(at uintptr) (o mihf.Opt[uint64]) {
	if v, ok := t.u32(at); ok {
		o = mihf.Some(uint64(v))
	}
	return o
}

// info takes what tcp_info has, and returns how many values were not taken.
func (s *socket) info(b []byte) (rejected int) {
	t := tcpInfo(b)
	var c unix.TCPInfo // for its offsets only
	rtt := func(at uintptr, none uint32) (o mihf.Opt[time.Duration]) {
		v, ok := t.u32(at)
		switch d := time.Duration(v) * time.Microsecond; {
		case !ok, v == 0, v == none:
		case d > mihf.MaxFlowRTT:
			rejected++
		default:
			o = mihf.Some(d)
		}
		return o
	}
	s.RTT = rtt(unsafe.Offsetof(c.Rtt), 0)
	if s.RTT.Known() {
		s.RTTVar = rtt(unsafe.Offsetof(c.Rttvar), 0)
	}
	s.MinRTT = rtt(unsafe.Offsetof(c.Min_rtt), ^uint32(0))
	s.ReceiveRTT = rtt(unsafe.Offsetof(c.Rcv_rtt), 0)

	mss, _ := t.u32(unsafe.Offsetof(c.Snd_mss))
	inBytes := func(at uintptr) (o mihf.Opt[uint64]) {
		if packets, ok := t.u32(at); ok && mss > 0 {
			o = mihf.Some(uint64(packets) * uint64(mss))
		}
		return o
	}
	s.CwndBytes, s.FlightBytes = inBytes(unsafe.Offsetof(c.Snd_cwnd)), inBytes(unsafe.Offsetof(c.Unacked))
	if v, ok := t.u64(unsafe.Offsetof(c.Delivery_rate)); ok && v > 0 {
		if bps := 8 * float64(v); bps <= mihf.MaxFlowRate {
			s.DeliveryRateBPS, s.AppLimited = mihf.Some(bps), t[flagsAt]&appLimited != 0
		} else {
			rejected++
		}
	}
	if v, ok := t.u32(unsafe.Offsetof(c.Pmtu)); ok && v > 0 {
		s.PathMTUBytes = mihf.Some(uint64(v))
	}
	s.AckedBytes, s.ReceivedBytes = t.count(unsafe.Offsetof(c.Bytes_acked)), t.count(unsafe.Offsetof(c.Bytes_received))
	s.SentSegments, s.RetransSegments = t.count32(unsafe.Offsetof(c.Data_segs_out)), t.count32(unsafe.Offsetof(c.Total_retrans))
	s.DeliveredSegments = t.count32(unsafe.Offsetof(c.Delivered))
	return rejected + s.limits(t)
}

// limits takes the times in which the flow was busy and what held it up.
func (s *socket) limits(t tcpInfo) (rejected int) {
	var c unix.TCPInfo
	for _, x := range [...]struct {
		at uintptr
		to *mihf.Opt[time.Duration]
	}{
		{unsafe.Offsetof(c.Busy_time), &s.Busy}, {unsafe.Offsetof(c.Rwnd_limited), &s.WindowLimited}, {unsafe.Offsetof(c.Sndbuf_limited), &s.BufferLimited},
	} {
		const century = 100 * 365 * 24 * time.Hour
		switch v, ok := t.u64(x.at); {
		case !ok:
		case v > uint64(century/time.Microsecond):
			rejected++
		default:
			*x.to = mihf.Some(time.Duration(v) * time.Microsecond)
		}
	}
	return rejected
}
