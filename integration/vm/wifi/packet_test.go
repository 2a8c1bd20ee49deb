package wifi

import (
	"encoding/binary"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// Packets of this type of Ethernet are the test's own (IEEE Std 802, local experiments). Both
// ends are in one network namespace, where IP would never go over the air.
const ethertype = 0x88b5

// packetSocket sees the test's packets of a radio's interface.
func (b *bed) packetSocket(r medium.Radio) (s int, i *net.Interface) {
	b.t.Helper()
	open := func() (err error) {
		if i, err = net.InterfaceByName(ifname(r)); err != nil {
			return err
		}
		s, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	}
	enter := func(f func() error) error { return f() }
	if b.far != nil && (r == ap1 || r == ap2) {
		enter = b.far.Do
	}
	if err := enter(open); err != nil {
		b.t.Fatal("a packet socket:", err)
	}
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, ethertype))
	if err := unix.Bind(s, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: i.Index}); err != nil {
		b.t.Fatal("bind a packet socket:", err)
	}
	return s, i
}

// send sends a packet from the first access point every so often, until stop, which tells how many.
func (b *bed) send(to medium.Radio, every time.Duration) (stop func() int) {
	b.t.Helper()
	s, source := b.packetSocket(ap1)
	target, err := net.InterfaceByName(ifname(to))
	if err != nil {
		b.t.Fatal(err)
	}
	packet := append(append([]byte(nil), target.HardwareAddr...), source.HardwareAddr...)
	packet = append(binary.BigEndian.AppendUint16(packet, ethertype), make([]byte, 200)...)
	quit, ended := make(chan struct{}), make(chan int)
	go func() {
		defer func() { _ = unix.Close(s) }() // nothing waits in it
		tick := time.NewTicker(every)
		defer tick.Stop()
		n := 0
		for {
			select {
			case <-tick.C:
				if _, err := unix.Write(s, packet); err == nil { // a full queue refuses it
					n++
				}
			case <-quit:
				ended <- n
				return
			}
		}
	}()
	return func() int {
		close(quit)
		return <-ended
	}
}

// received is what came over the air.
type received struct {
	count int
	last  mihf.Time // boot time
}

// A listener counts the test's packets.
type listener struct {
	socket int
	done   chan received
}

// listen receives from now on.
func (b *bed) listen(r medium.Radio) *listener {
	b.t.Helper()
	s, _ := b.packetSocket(r)
	// What it looks for an end at.
	if err := unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}); err != nil {
		b.t.Fatal(err)
	}
	l := &listener{socket: s, done: make(chan received)}
	quit := make(chan struct{})
	b.t.Cleanup(func() { close(quit) })
	go l.run(quit)
	return l
}

func (l *listener) run(quit <-chan struct{}) {
	defer func() { _ = unix.Close(l.socket) }()
	var got received
	b := make([]byte, 2048)
	for {
		n, from, err := unix.Recvfrom(l.socket, b, 0)
		ll, ok := from.(*unix.SockaddrLinklayer)
		switch {
		case errors.Is(err, unix.EAGAIN):
			select { // nothing waits: this is all until now
			case l.done <- got:
				return
			case <-quit:
				return
			default:
			}
		case err != nil:
			return
		case n > 0 && ok && ll.Pkttype != unix.PACKET_OUTGOING:
			got.count++
			got.last = clock.Boot().Now()
		}
	}
}

// end returns what came until now.
func (l *listener) end() received { return <-l.done }
