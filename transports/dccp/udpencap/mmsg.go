package udpencap

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sizes of a batch. A message holds what the kernel joined of packets in a row.
const (
	readMessages  = 4
	messageBytes  = 1<<16 - 1
	writeMessages = 64
	controlBytes  = 64
	maxSegments   = 64 // UDP_MAX_SEGMENTS
)

// mmsghdr is the kernel's struct mmsghdr.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
	_   [4]byte
}

// incoming is room for what one system call reads.
type incoming struct {
	msgs    [readMessages]mmsghdr
	iov     [readMessages]unix.Iovec
	names   [readMessages]unix.RawSockaddrInet6
	control [readMessages][controlBytes]byte
	data    [readMessages][messageBytes]byte
}

// Only sockets that have something to read hold room.
var inbox = sync.Pool{New: func() any { return new(incoming) }}

// reader hands packets on.
type reader struct {
	take func(from netip.AddrPort, b []byte)
}

// read reads what there is, and reports whether there was nothing.
func (r *reader) read(fd uintptr) (nothing bool, err error) {
	in := inbox.Get().(*incoming)
	defer inbox.Put(in)
	for i := range in.msgs {
		in.iov[i].Base = &in.data[i][0]
		in.iov[i].SetLen(messageBytes)
		h := &in.msgs[i].hdr
		*h = unix.Msghdr{
			Name: (*byte)(unsafe.Pointer(&in.names[i])), Namelen: unix.SizeofSockaddrInet6,
			Iov: &in.iov[i], Control: &in.control[i][0],
		}
		h.SetIovlen(1)
		h.SetControllen(controlBytes)
	}
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&in.msgs[0])), readMessages, unix.MSG_DONTWAIT, 0, 0)
	if errno == unix.EAGAIN {
		return true, nil
	}
	if errno != 0 {
		return false, errno
	}
	for i := range int(n) {
		r.split(&in.msgs[i], &in.names[i], in.data[i][:in.msgs[i].n])
	}
	return false, nil
}

// split hands on the packets that the kernel joined in one message.
func (r *reader) split(m *mmsghdr, name *unix.RawSockaddrInet6, b []byte) {
	if m.hdr.Flags&unix.MSG_TRUNC != 0 {
		return
	}
	from := addrOf(name)
	size := joined(&m.hdr)
	if size <= 0 {
		size = len(b)
	}
	for len(b) > 0 {
		n := min(size, len(b))
		r.take(from, b[:n:n])
		b = b[n:]
	}
}

// joined returns the length of each packet in a message, 0 where it is one.
func joined(h *unix.Msghdr) int {
	c := unsafe.Slice(h.Control, h.Controllen)
	for len(c) >= unix.SizeofCmsghdr {
		cm := (*unix.Cmsghdr)(unsafe.Pointer(&c[0]))
		if cm.Len < unix.SizeofCmsghdr || cm.Len > uint64(len(c)) {
			return 0
		}
		if cm.Level == unix.IPPROTO_UDP && cm.Type == unix.UDP_GRO && cm.Len >= uint64(unix.CmsgLen(4)) {
			return int(binary.NativeEndian.Uint32(c[unix.CmsgLen(0):]))
		}
		next := unix.CmsgSpace(int(cm.Len) - unix.CmsgLen(0))
		if next >= len(c) {
			return 0
		}
		c = c[next:]
	}
	return 0
}

func addrOf(name *unix.RawSockaddrInet6) netip.AddrPort {
	if name.Family == unix.AF_INET {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), port(&v4.Port))
	}
	a := netip.AddrFrom16(name.Addr)
	if name.Scope_id != 0 && a.IsLinkLocalUnicast() {
		a = a.WithZone(strconv.Itoa(int(name.Scope_id)))
	}
	return netip.AddrPortFrom(a.Unmap(), port(&name.Port))
}

func port(p *uint16) uint16 {
	return binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(p))[:])
}

// outgoing is room for what one system call sends.
type outgoing struct {
	msgs    [writeMessages]mmsghdr
	iov     [writeMessages]unix.Iovec
	name    unix.RawSockaddrInet6
	control [writeMessages][controlBytes]byte
	packets [writeMessages]int // in each message
}

var outbox = sync.Pool{New: func() any { return new(outgoing) }}

// Write sends packets, with as few messages as can be: a run of equal length, the last of
// which may be shorter, is one message that the kernel splits.
func (s *socket) Write(to netip.AddrPort, b []byte, lengths []int) (sent int, err error) {
	out := outbox.Get().(*outgoing)
	defer outbox.Put(out)
	nameLen, err := s.setName(&out.name, to)
	if err != nil {
		return 0, err
	}
	for sent < len(lengths) {
		messages, packets, bytes := out.fill(nameLen, b, lengths[sent:], s.segments.Load())
		done, errno := s.send(out, messages)
		if done == messages {
			sent += packets
			b = b[bytes:]
			continue
		}
		if errors.Is(errno, unix.EIO) || errors.Is(errno, unix.EINVAL) {
			if s.segments.Swap(false) {
				continue // the device or route cannot: packet by packet from here on
			}
		}
		for _, n := range out.packets[:done] {
			sent += n
		}
		return sent, errno
	}
	return sent, nil
}

// setName writes an address as the socket's family has it.
func (s *socket) setName(name *unix.RawSockaddrInet6, to netip.AddrPort) (uint32, error) {
	if !s.v6 {
		if !to.Addr().Unmap().Is4() {
			return 0, unix.EAFNOSUPPORT
		}
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		*v4 = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: to.Addr().Unmap().As4()}
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&v4.Port))[:], to.Port())
		return unix.SizeofSockaddrInet4, nil
	}
	*name = unix.RawSockaddrInet6{Family: unix.AF_INET6, Addr: to.Addr().As16()}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&name.Port))[:], to.Port())
	if zone := to.Addr().Zone(); zone != "" {
		if i, err := strconv.Atoi(zone); err == nil {
			name.Scope_id = uint32(i)
		}
	}
	return unix.SizeofSockaddrInet6, nil
}

// fill prepares messages, and returns how many, with how many packets and bytes.
func (o *outgoing) fill(nameLen uint32, b []byte, lengths []int, segments bool) (messages, packets, bytes int) {
	for messages < writeMessages && packets < len(lengths) {
		n, size := 1, lengths[packets]
		total := size
		for segments && packets+n < len(lengths) && n < maxSegments {
			next := lengths[packets+n]
			if next > size || total+next > messageBytes-28 {
				break
			}
			total += next
			n++
			if next < size {
				break
			}
		}
		o.iov[messages].Base = &b[bytes]
		o.iov[messages].SetLen(total)
		h := &o.msgs[messages].hdr
		*h = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&o.name)), Namelen: nameLen, Iov: &o.iov[messages]}
		h.SetIovlen(1)
		if n > 1 {
			o.segment(h, messages, size)
		}
		o.packets[messages] = n
		messages, packets, bytes = messages+1, packets+n, bytes+total
	}
	return messages, packets, bytes
}

// segment has the kernel split a message into packets of the given size.
func (o *outgoing) segment(h *unix.Msghdr, i, size int) {
	cm := (*unix.Cmsghdr)(unsafe.Pointer(&o.control[i][0]))
	cm.Level, cm.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	cm.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(o.control[i][unix.CmsgLen(0):], uint16(size))
	h.Control = &o.control[i][0]
	h.SetControllen(unix.CmsgSpace(2))
}

// send sends messages, waiting for room in the socket's buffer.
func (s *socket) send(o *outgoing, messages int) (done int, failed error) {
	err := s.raw.Write(func(fd uintptr) bool {
		for done < messages {
			n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&o.msgs[done])), uintptr(messages-done), unix.MSG_DONTWAIT, 0, 0)
			switch {
			case errno == unix.EAGAIN:
				return false
			case errno == unix.EINTR:
			case errno != 0:
				failed = errno
				return true
			default:
				done += int(n)
			}
		}
		return true
	})
	if err != nil {
		return done, err
	}
	return done, failed
}
