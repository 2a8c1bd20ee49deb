package kernel_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"mihf.dev/integration/netns"
	"mihf.dev/transports/tcpadjust/kernel"
)

const soon = 20 * time.Second // what has to happen at once, on a machine that does other things too

// until waits for a condition.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(soon); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", soon, what)
		}
	}
}

// download is a connection on which a far host sends without end.
type download struct {
	near, far     *net.TCPConn
	local, remote netip.AddrPort
}

// hosts returns namespaces that a veth pair joins, with an address of each family.
func hosts(t *testing.T) (near, far *netns.NS) {
	t.Helper()
	near, far = netns.New(t), netns.New(t)
	near.Pair("v0", far, "v1")
	near.Up("v0")
	far.Up("v1")
	for _, cidr := range []string{"10.4.0.%/24", "fd00:4::%/64"} {
		near.AddAddr("v0", host(cidr, '1'), 0, 0)
		far.AddAddr("v1", host(cidr, '2'), 0, 0)
	}
	return near, far
}

func host(cidr string, n byte) string {
	b := []byte(cidr)
	for i := range b {
		if b[i] == '%' {
			b[i] = n
		}
	}
	return string(b)
}

func startDownload(t *testing.T, near, far *netns.NS, from string) *download {
	t.Helper()
	d := &download{}
	var l net.Listener
	until(t, "an address", func() bool { // one of IPv6 is tentative at first
		return far.Do(func() (err error) {
			l, err = listen(t, from)
			return err
		}) == nil
	})
	defer l.Close()
	until(t, "a connection", func() bool {
		err := near.Do(func() error {
			c, err := dial(t, l)
			if err == nil {
				d.near = c.(*net.TCPConn)
			}
			return err
		})
		return err == nil
	})
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	d.far = c.(*net.TCPConn)
	d.local = d.near.LocalAddr().(*net.TCPAddr).AddrPort()
	d.remote = d.near.RemoteAddr().(*net.TCPAddr).AddrPort()
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(io.Discard, d.near); done <- struct{}{} }()
	go func() {
		b := make([]byte, 1<<16)
		for {
			if _, err := d.far.Write(b); err != nil {
				done <- struct{}{}
				return
			}
		}
	}()
	t.Cleanup(func() {
		d.near.Close()
		d.far.Close()
		<-done
		<-done
	})
	until(t, "data", func() bool { return info(t, d.far).Bytes_acked > 1<<20 })
	return d
}

func TestFreeze(t *testing.T) {
	near, far := hosts(t)
	a := open(t)
	for name, openFreezer := range map[string]func(netlink.Link) (*kernel.Freezer, error){
		"tcx": kernel.OpenFreezer, "clsact": kernel.OpenFilteringFreezer,
	} {
		for _, from := range []string{"10.4.0.2", "fd00:4::2"} {
			t.Run(name+" "+from, func(t *testing.T) {
				var f *kernel.Freezer
				in(t, near, func() (err error) {
					f, err = openFreezer(near.Link("v0"))
					return err
				})
				closed := false
				t.Cleanup(func() {
					if !closed {
						in(t, near, f.Close)
					}
				})
				d := startDownload(t, near, far, from)
				cookie := find(t, near, a, d.near).Cookie
				freeze(t, near, a, f, d, cookie)
				frozen := info(t, d.far)
				time.Sleep(50 * time.Millisecond) // nothing may come meanwhile
				later := info(t, d.far)
				if later.Bytes_acked != frozen.Bytes_acked || later.Snd_cwnd < frozen.Snd_cwnd {
					t.Errorf("frozen: %d octets came, the window went from %d to %d", later.Bytes_acked-frozen.Bytes_acked, frozen.Snd_cwnd, later.Snd_cwnd)
				}
				if n, err := f.Thaw(d.local, d.remote); n == 0 || err != nil {
					t.Errorf("%d packets had the window closed: %v", n, err)
				}
				apply(t, near, a, kernel.Order{Cookie: cookie, Acks: 1})
				until(t, "data after the thaw", func() bool { return info(t, d.far).Bytes_acked > frozen.Bytes_acked+1<<20 })

				freeze(t, near, a, f, d, cookie)
				in(t, near, f.Close)
				closed = true
				apply(t, near, a, kernel.Order{Cookie: cookie, Acks: 1})
				was := info(t, d.far).Bytes_acked
				until(t, "data after the freezer went", func() bool { return info(t, d.far).Bytes_acked > was+1<<20 })
			})
		}
	}
	if list, err := near.NL.FilterList(near.Link("v0"), netlink.HANDLE_MIN_EGRESS); err != nil || len(list) > 0 {
		t.Errorf("filters left: %v, %v", list, err)
	}
}

// freeze closes the window of the download, and waits until its sender knows.
func freeze(t *testing.T, near *netns.NS, a *kernel.Actuator, f *kernel.Freezer, d *download, cookie uint64) {
	t.Helper()
	if err := f.Freeze(d.local, d.remote, time.Minute); err != nil {
		t.Fatal(err)
	}
	apply(t, near, a, kernel.Order{Cookie: cookie, Acks: 1})
	until(t, "a closed window at the sender, and nothing on its way", func() bool {
		i := info(t, d.far)
		return i.Snd_wnd == 0 && i.Unacked == 0
	})
}

// TestFreezeEndsAtItsDeadline, without anybody's doing.
func TestFreezeEndsAtItsDeadline(t *testing.T) {
	near, far := hosts(t)
	a := open(t)
	var f *kernel.Freezer
	in(t, near, func() (err error) {
		f, err = kernel.OpenFreezer(near.Link("v0"))
		return err
	})
	t.Cleanup(func() { in(t, near, f.Close) })
	d := startDownload(t, near, far, "10.4.0.2")
	cookie := find(t, near, a, d.near).Cookie
	if err := f.Freeze(d.local, d.remote, 200*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	apply(t, near, a, kernel.Order{Cookie: cookie, Acks: 1})
	until(t, "a closed window at the sender", func() bool { return info(t, d.far).Snd_wnd == 0 })
	was := info(t, d.far).Bytes_acked
	until(t, "data by the sender's own probe", func() bool { return info(t, d.far).Bytes_acked > was+1<<20 })
	if err := f.Freeze(d.local, d.remote, 0); err == nil {
		t.Error("a freeze of no time was taken")
	}
	if n, err := f.Thaw(d.remote, d.local); n != 0 || err != nil {
		t.Errorf("a connection that isn't frozen: %d, %v", n, err)
	}
}

func TestFreezerOnNoInterface(t *testing.T) {
	near, _ := hosts(t)
	gone := near.Link("v0")
	near.Delete("v0")
	err := near.Do(func() error {
		_, err := kernel.OpenFreezer(gone)
		return err
	})
	if !errors.Is(err, kernel.ErrUnsupported) {
		t.Errorf("an interface that is gone: %v", err)
	}
}
