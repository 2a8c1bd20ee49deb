package link

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// End is one end of a [TUN].
type End struct {
	NS   vnetns.NsHandle // the namespace that gets the device
	Name string          // of the device; at most 15 octets
	MTU  int             // 0: 1500
}

// TUNConfig says what a [TUN] is.
type TUNConfig struct {
	Near, Far End
	Up, Down  Conditions
	Seed      uint64 // of the losses
}

// TUN is a link between two TUN devices, each in a network namespace. Needs CAP_NET_ADMIN there.
type TUN struct {
	*Link
	near, far *os.File
	refused   atomic.Uint64
}

// tunQueue is how many packets a device keeps for a reader that waits for a processor. It is
// long, so that the queue that drops is the line's.
const tunQueue = 10000

// OpenTUN makes the two devices and sets them up; they have no addresses yet. [TUN.Run] must be called to remove
// them.
func OpenTUN(cfg TUNConfig) (*TUN, error) {
	l, err := newLink(cfg.Up, cfg.Down, cfg.Seed)
	if err != nil {
		return nil, err
	}
	t := &TUN{Link: l}
	if t.near, err = openTUN(cfg.Near); err != nil {
		return nil, fmt.Errorf("link: the near end: %w", err)
	}
	if t.far, err = openTUN(cfg.Far); err != nil {
		return nil, fmt.Errorf("link: the far end: %w", errors.Join(err, t.near.Close()))
	}
	l.up.write = func(p Packet) { t.send(t.far.Write(p.Data)) }
	l.down.write = func(p Packet) { t.send(t.near.Write(p.Data)) }
	return t, nil
}

func openTUN(e End) (*os.File, error) {
	f, err := inNamespace(e.NS, func() (*os.File, error) { return newTUN(e.Name) })
	if err != nil {
		return nil, err
	}
	if err := setUp(e); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// inNamespace calls f on a thread that is in the namespace and ends with the call.
func inNamespace(ns vnetns.NsHandle, f func() (*os.File, error)) (*os.File, error) {
	type result struct {
		file *os.File
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread does not come back
		if err := vnetns.Set(ns); err != nil {
			done <- result{nil, fmt.Errorf("enter the namespace: %w", err)}
			return
		}
		file, err := f()
		done <- result{file, err}
	}()
	r := <-done
	return r.file, r.err
}

func newTUN(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	r, err := unix.NewIfreq(name)
	if err == nil {
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	}
	if err != nil {
		return nil, fmt.Errorf("make the device %s: %w", name, errors.Join(err, unix.Close(fd)))
	}
	return os.NewFile(uintptr(fd), name), nil
}

func setUp(e End) error {
	nl, err := netlink.NewHandleAt(e.NS, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer nl.Close()
	dev, err := nl.LinkByName(e.Name)
	if err != nil {
		return fmt.Errorf("find the device %s: %w", e.Name, err)
	}
	if e.MTU != 0 {
		if err := nl.LinkSetMTU(dev, e.MTU); err != nil {
			return fmt.Errorf("set the MTU of %s to %d: %w", e.Name, e.MTU, err)
		}
	}
	if err := nl.LinkSetTxQLen(dev, tunQueue); err != nil {
		return fmt.Errorf("set the queue of %s: %w", e.Name, err)
	}
	if err := nl.LinkSetUp(dev); err != nil {
		return fmt.Errorf("set %s up: %w", e.Name, err)
	}
	return nil
}

// Refused returns how many packets an end did not take, being down.
func (t *TUN) Refused() uint64 { return t.refused.Load() }

func (t *TUN) send(_ int, err error) {
	if err != nil {
		t.refused.Add(1)
	}
}

// Run carries packets until ctx ends or an end is removed; the devices are gone when it returns.
func (t *TUN) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	t.run(ctx, g)
	g.Go(func() error { return read(t.near, t.up) })
	g.Go(func() error { return read(t.far, t.down) })
	g.Go(func() error {
		<-ctx.Done()
		past := time.Unix(1, 0)
		return errors.Join(t.near.SetReadDeadline(past), t.far.SetReadDeadline(past)) // ends the readers
	})
	return errors.Join(g.Wait(), t.near.Close(), t.far.Close())
}

func read(f *os.File, d *direction) error {
	buf := make([]byte, 1<<16)
	for {
		n, err := f.Read(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return fmt.Errorf("link: read %s: %w", f.Name(), err)
		}
		d.push(Packet{append([]byte(nil), buf[:n]...), n, nil})
	}
}
