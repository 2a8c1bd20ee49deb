package rtnl

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	// recvSize holds every datagram of the kernel: dumps use at most 32 KiB.
	recvSize       = 64 << 10
	requestTimeout = 5 * time.Second
)

var (
	errTruncated   = errors.New("message is longer than the buffer")
	errInterrupted = nl.ErrDumpInterrupted
)

// conn is a netlink socket for one goroutine. Its port id is chosen by the kernel.
type conn struct {
	file *os.File
	raw  syscall.RawConn
	buf  []byte
}

// dial opens a socket in a namespace (not above 0: the caller's own) and subscribes to
// groups.
func dial(ns netns.NsHandle, groups ...uint) (*conn, error) {
	if ns <= 0 {
		ns = netns.None()
	}
	sock, err := nl.SubscribeAt(ns, netns.None(), unix.NETLINK_ROUTE, groups...)
	if err != nil {
		return nil, fmt.Errorf("open netlink route socket: %w", err)
	}
	defer sock.Close()
	// The library's reader takes 64 KiB of new memory a message; a second descriptor of
	// the same socket is read into one buffer.
	fd, err := unix.FcntlInt(uintptr(sock.GetFd()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open netlink route socket: %w", err)
	}
	c := &conn{file: os.NewFile(uintptr(fd), "netlink"), buf: make([]byte, recvSize)}
	if c.raw, err = c.file.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("open netlink route socket: %w", err), c.close())
	}
	return c, nil
}

func (c *conn) close() error { return c.file.Close() }

// control calls f with the socket.
func (c *conn) control(f func(fd int) error) error {
	var err error
	if e := c.raw.Control(func(fd uintptr) { err = f(int(fd)) }); e != nil {
		return e
	}
	return err
}

// setBuffer asks for a receive buffer, beyond the system's limit where that is permitted.
func (c *conn) setBuffer(size int) error {
	return c.control(func(fd int) error {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size) == nil {
			return nil
		}
		return os.NewSyscallError("set receive buffer", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size))
	})
}

// setStrict makes the kernel heed the filters of dump requests (Linux 4.20).
func (c *conn) setStrict() error {
	return c.control(func(fd int) error {
		return os.NewSyscallError("set strict check", unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1))
	})
}

// setFilter replaces the socket's filter at once. Where the kernel refuses it, there is none.
func (c *conn) setFilter(program []bpf.Instruction) error {
	rawProgram, err := bpf.Assemble(program)
	if err != nil {
		return fmt.Errorf("assemble route filter: %w", err)
	}
	filter := make([]unix.SockFilter, len(rawProgram))
	for i, in := range rawProgram {
		filter[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	return c.control(func(fd int) error {
		prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog)
		if err != nil {
			// An old filter would hide the routes of new peers.
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
		}
		return os.NewSyscallError("attach route filter", err)
	})
}

// receive waits for one datagram and returns its octets, which are good until the next
// call, and the sender's port id: 0 is the kernel.
func (c *conn) receive() ([]byte, uint32, error) {
	var n int
	var from unix.Sockaddr
	var err error
	e := c.raw.Read(func(fd uintptr) bool {
		for {
			n, from, err = unix.Recvfrom(int(fd), c.buf, unix.MSG_TRUNC)
			if !errors.Is(err, unix.EINTR) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	switch {
	case e != nil:
		return nil, 0, fmt.Errorf("receive: %w", e)
	case err != nil:
		return nil, 0, os.NewSyscallError("receive", err)
	case n > len(c.buf):
		return nil, 0, errTruncated
	}
	sa, ok := from.(*unix.SockaddrNetlink)
	if !ok {
		return nil, 0, errors.New("receive: sender is not netlink")
	}
	return c.buf[:n], sa.Pid, nil
}

// message is one netlink message inside a datagram.
type message struct {
	typ, flags uint16
	seq        uint32
	data       []byte
}

// messages calls f for each message of a datagram.
func messages(b []byte, f func(m message) error) error {
	for len(b) >= unix.SizeofNlMsghdr {
		n := int(order.Uint32(b))
		if n < unix.SizeofNlMsghdr || n > len(b) {
			return fmt.Errorf("netlink header: %w", errShort)
		}
		m := message{
			typ: order.Uint16(b[4:]), flags: order.Uint16(b[6:]), seq: order.Uint32(b[8:]),
			data: b[unix.SizeofNlMsghdr:n:n],
		}
		if err := f(m); err != nil {
			return err
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return nil
}

// errDone ends the reading of an answer.
var errDone = errors.New("done")

// request sends a request and calls each for every message of the answer. It returns the
// kernel's errno, or errInterrupted when a dump may be incomplete.
func (c *conn) request(req *nl.NetlinkRequest, each func(message)) error {
	b := req.Serialize()
	if err := c.control(func(fd int) error {
		return os.NewSyscallError("send", unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
	}); err != nil {
		return err
	}
	if err := c.file.SetReadDeadline(time.Now().Add(requestTimeout)); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	interrupted := false
	for {
		b, from, err := c.receive()
		if err != nil {
			return err
		}
		if from != 0 {
			continue
		}
		err = messages(b, func(m message) error {
			if m.seq != req.Seq {
				return nil // the rest of an answer that was given up
			}
			interrupted = interrupted || m.flags&unix.NLM_F_DUMP_INTR != 0
			return answerPart(m, each)
		})
		switch {
		case errors.Is(err, errDone) && interrupted:
			return errInterrupted
		case errors.Is(err, errDone):
			return nil
		case err != nil:
			return err
		}
	}
}

func answerPart(m message, each func(message)) error {
	switch m.typ {
	case unix.NLMSG_DONE, unix.NLMSG_ERROR:
		if len(m.data) >= 4 {
			if errno := -int32(order.Uint32(m.data)); errno > 0 {
				return syscall.Errno(errno)
			}
		}
		return errDone
	}
	each(m)
	if m.flags&unix.NLM_F_MULTI == 0 {
		return errDone
	}
	return nil
}
