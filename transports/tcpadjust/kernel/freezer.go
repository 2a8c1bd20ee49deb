package kernel

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// MaxFreeze is how long a freeze lasts in the kernel at most: a sender that probes a closed
// window doubles its pauses, and needs about as long again to come back by itself.
const MaxFreeze = 10 * time.Second

// MaxFrozen is how many connections of an interface may be frozen at once.
const MaxFrozen = 1 << 14

// Freezer closes the window that connections advertise on their way out of one interface.
// A sender whose peer's window is closed sends nothing and keeps its own window. It is safe
// for concurrent use.
type Freezer struct {
	flows *ebpf.Map
	undo  []func() error
}

// OpenFreezer attaches a freezer to an interface of the namespace of the calling thread.
// Nothing is frozen yet. Other programs on the interface run before and after it. Before
// Linux 6.6 it is a filter of a clsact queueing discipline, which is made if there is none
// and stays: it does nothing by itself, others may use it by then, and its removal would
// lose packets.
func OpenFreezer(device netlink.Link) (*Freezer, error) {
	f, err := openFreezer(device, true)
	if err != nil {
		return nil, fmt.Errorf("freeze connections of %s: %w: %w", device.Attrs().Name, ErrUnsupported, err)
	}
	return f, nil
}

func openFreezer(device netlink.Link, tcx bool) (*Freezer, error) {
	flows, err := ebpf.NewMap(&ebpf.MapSpec{Name: "mih_frozen", Type: ebpf.LRUHash, KeySize: frozenKey, ValueSize: frozenSize, MaxEntries: MaxFrozen})
	if err != nil {
		return nil, fmt.Errorf("make the map of frozen connections (CAP_BPF): %w", err)
	}
	f := &Freezer{flows: flows, undo: []func() error{flows.Close}}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "mih_freeze", Type: ebpf.SchedCLS, Instructions: freezeProgram(flows.FD(), headerOf(device)), License: License,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load the classifier (CAP_BPF, CAP_NET_ADMIN): %w", err), f.Close())
	}
	f.undo = append(f.undo, p.Close)
	if tcx {
		l, err := link.AttachTCX(link.TCXOptions{Interface: device.Attrs().Index, Program: p, Attach: ebpf.AttachTCXEgress})
		if err == nil {
			f.undo = append(f.undo, l.Close)
			return f, nil
		}
		if !errors.Is(err, ebpf.ErrNotSupported) {
			return nil, errors.Join(fmt.Errorf("attach the classifier: %w", err), f.Close())
		}
	}
	if err := f.filter(device, p); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// headerOf returns how many octets of link layer a packet has on the way out.
func headerOf(device netlink.Link) int32 {
	if len(device.Attrs().HardwareAddr) == 0 {
		return 0
	}
	return 14
}

// freezeHandle marks what is ours among the filters of an interface.
const freezeHandle = 0x4d49

// filter attaches the program by a clsact queueing discipline.
func (f *Freezer) filter(device netlink.Link, p *ebpf.Program) error {
	index := device.Attrs().Index
	clsact := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
	if err := netlink.QdiscAdd(clsact); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add clsact: %w", err)
	}
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: index, Parent: netlink.HANDLE_MIN_EGRESS, Handle: freezeHandle, Priority: freezeHandle, Protocol: unix.ETH_P_ALL,
		},
		Fd: p.FD(), Name: "mih_freeze", DirectAction: true,
	}
	if err := netlink.FilterReplace(filter); err != nil {
		return fmt.Errorf("add the filter: %w", err)
	}
	f.undo = append(f.undo, func() error { return netlink.FilterDel(filter) })
	return nil
}

// Close takes the freezer off; what was frozen advertises its window again with the next
// packet.
func (f *Freezer) Close() error {
	var errs []error
	for i := len(f.undo) - 1; i >= 0; i-- {
		errs = append(errs, f.undo[i]())
	}
	f.undo = nil
	return errors.Join(errs...)
}

// Freeze closes the window of a connection for at most d, and at most [MaxFreeze]. It acts
// on the next acknowledgement, which an [Order] can have sent at once.
func (f *Freezer) Freeze(local, remote netip.AddrPort, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("a freeze of %v", d)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	var value [frozenSize]byte
	native.PutUint64(value[frozenUntil:], uint64(now.Nano()+int64(min(d, MaxFreeze)))) //nolint:gosec // both are positive
	if err := f.flows.Put(key(local, remote), value[:]); err != nil {
		return fmt.Errorf("freeze %v to %v: %w", local, remote, err)
	}
	return nil
}

// Thaw opens the window again and returns how many packets had it closed. A connection
// that wasn't frozen is no error. The sender learns of it by the next acknowledgement.
func (f *Freezer) Thaw(local, remote netip.AddrPort) (packets int, err error) {
	var value [frozenSize]byte
	err = f.flows.LookupAndDelete(key(local, remote), &value)
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, unix.EINVAL) { // LRU maps before 5.14
		_ = f.flows.Lookup(key(local, remote), &value)
		err = f.flows.Delete(key(local, remote))
	}
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return 0, fmt.Errorf("thaw %v to %v: %w", local, remote, err)
	}
	return int(native.Uint32(value[frozenHits:])), nil
}
