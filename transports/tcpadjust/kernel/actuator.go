package kernel

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// MaxOrders is how many sockets one call of [Actuator.Apply] changes.
const MaxOrders = 1 << 16

// ErrUnsupported is an Actuator that this kernel, or this process's rights, do not allow.
var ErrUnsupported = errors.New("live connections can't be adjusted here")

// opened counts actuators, for their names.
var opened atomic.Uint32

// Actuator changes connections of the network namespace that it was opened in.
type Actuator struct {
	mu     sync.Mutex
	orders *ebpf.Map
	kick   io.Closer
	close  []io.Closer
	apply  *link.Iter
	list   *link.Iter
}

// Open loads the programs. It needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, a kernel of at
// least 6.1 with BTF, and a BPF syscall that is not locked down; [ErrUnsupported] names
// what is missing.
func Open() (*Actuator, error) {
	a := &Actuator{}
	if err := a.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrUnsupported, err), a.Close())
	}
	return a, nil
}

func (a *Actuator) load() error {
	if err := rlimit.RemoveMemlock(); err != nil { // before 5.11, maps count against it
		return fmt.Errorf("raise the limit of locked memory: %w", err)
	}
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return fmt.Errorf("read the kernel's types (CONFIG_DEBUG_INFO_BTF): %w", err)
	}
	l := &layout{spec: spec}
	a.orders, err = a.newMap(&ebpf.MapSpec{Name: "mih_orders", Type: ebpf.Hash, KeySize: 8, ValueSize: orderSize, MaxEntries: MaxOrders, Flags: unix.BPF_F_NO_PREALLOC})
	if err != nil {
		return err
	}
	current, err := a.newMap(&ebpf.MapSpec{Name: "mih_kick", Type: ebpf.Array, KeySize: 4, ValueSize: kickSize, MaxEntries: 1})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("mih%d_%d", os.Getpid(), opened.Add(1)%1000) // global over all namespaces
	if err := a.register(l, name, current.FD()); err != nil {
		return err
	}
	if a.apply, err = a.iterator("mih_apply", l, applyProgram(l, a.orders.FD(), current.FD(), name)); err != nil {
		return err
	}
	a.list, err = a.iterator("mih_list", l, listProgram(l))
	return err
}

func (a *Actuator) newMap(spec *ebpf.MapSpec) (*ebpf.Map, error) {
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, fmt.Errorf("make the map %s (CAP_BPF): %w", spec.Name, err)
	}
	a.close = append(a.close, m)
	return m, nil
}

// iterator loads a program that visits TCP sockets.
func (a *Actuator) iterator(name string, l *layout, code asm.Instructions) (*link.Iter, error) {
	if err := l.err(); err != nil {
		return nil, fmt.Errorf("%s: the kernel's structures are not as known: %w", name, err)
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: name, Type: ebpf.Tracing, AttachType: ebpf.AttachTraceIter, AttachTo: "tcp", Instructions: code, License: License,
	})
	if err != nil {
		return nil, fmt.Errorf("load %s (CAP_BPF, CAP_PERFMON): %w", name, err)
	}
	a.close = append(a.close, p)
	it, err := link.AttachIter(link.IterOptions{Program: p})
	if err != nil {
		return nil, fmt.Errorf("attach %s: %w", name, err)
	}
	a.close = append(a.close, it)
	return it, nil
}

// register makes the kick's congestion control known to the kernel.
func (a *Actuator) register(l *layout, name string, current int) error {
	var ops *btf.Struct
	if err := l.spec.TypeByName("tcp_congestion_ops", &ops); err != nil {
		return fmt.Errorf("struct tcp_congestion_ops: %w", err)
	}
	value := make([]byte, ops.Size)
	at := l.at("tcp_congestion_ops", "name")
	init := kickInit(l, current)
	if err := l.err(); err != nil {
		return err
	}
	copy(value[at:at+ccNameSize-1], name)
	constant := func(v int32) asm.Instructions { return asm.Instructions{asm.Mov.Imm(asm.R0, v), asm.Return()} }
	member := func(m string, code asm.Instructions) *ebpf.ProgramSpec {
		return &ebpf.ProgramSpec{Name: "mih_" + m, Type: ebpf.StructOps, AttachTo: "tcp_congestion_ops:" + m, Instructions: code, License: License}
	}
	spec := &ebpf.CollectionSpec{
		Maps: map[string]*ebpf.MapSpec{"kick": {
			Name: "mih_cc", Type: ebpf.StructOpsMap, Flags: unix.BPF_F_LINK, Key: &btf.Int{Size: 4}, KeySize: 4,
			Value: ops, ValueSize: ops.Size, MaxEntries: 1, Contents: []ebpf.MapKV{{Key: uint32(0), Value: value}},
		}},
		Programs: map[string]*ebpf.ProgramSpec{
			"init": member("init", init), "ssthresh": member("ssthresh", constant(2)),
			"undo_cwnd": member("undo_cwnd", constant(2)), "cong_avoid": member("cong_avoid", constant(0)),
		},
	}
	c, err := ebpf.NewCollection(spec)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, ebpf.ErrNotSupported) {
		// Before 6.4 there is no link: the map's update registers, its deletion takes it back.
		spec.Maps["kick"].Flags = 0
		if c, err = ebpf.NewCollection(spec); err == nil {
			a.kick = deletion{c.Maps["kick"]}
			a.close = append(a.close, closer(c.Close))
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("load the congestion control %s (struct_ops): %w", name, err)
	}
	a.close = append(a.close, closer(c.Close))
	if a.kick, err = link.AttachStructOps(link.StructOpsOptions{Map: c.Maps["kick"]}); err != nil {
		return fmt.Errorf("register the congestion control %s (CAP_NET_ADMIN): %w", name, err)
	}
	return nil
}

type closer func()

func (c closer) Close() error {
	c()
	return nil
}

type deletion struct{ m *ebpf.Map }

func (d deletion) Close() error { return d.m.Delete(uint32(0)) }

// Close takes all programs out of the kernel. Sockets stay as they are.
func (a *Actuator) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	if a.kick != nil {
		errs = append(errs, a.kick.Close())
		a.kick = nil
	}
	for i := len(a.close) - 1; i >= 0; i-- {
		errs = append(errs, a.close[i].Close())
	}
	a.close = nil
	return errors.Join(errs...)
}

// Sockets returns the connections that carry data, of the namespace of the calling
// thread, for which keep is true.
func (a *Actuator) Sockets(keep func(*Socket) bool) ([]Socket, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := visit(a.list)
	if err != nil {
		return nil, err
	}
	var out []Socket
	seen := map[uint64]bool{} // where its buffer is full the iterator shows a socket again
	for ; len(b) >= recordSize; b = b[recordSize:] {
		s, _ := decode(b)
		if !seen[s.Cookie] && keep(&s) {
			seen[s.Cookie] = true
			out = append(out, s)
		}
	}
	return out, nil
}

func visit(it *link.Iter) ([]byte, error) {
	r, err := it.Open()
	if err != nil {
		return nil, fmt.Errorf("visit the sockets: %w", err)
	}
	b, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("visit the sockets: %w", err)
	}
	return b, nil
}

// Apply carries orders out, at most [MaxOrders] and one a socket, and returns what became
// of each, in their order. A socket that has gone is not Done, which is no error.
func (a *Actuator) Apply(orders []Order) ([]Result, error) {
	if len(orders) > MaxOrders {
		return nil, fmt.Errorf("%d orders at once, more than %d", len(orders), MaxOrders)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	keys := make([]uint64, len(orders))
	values := make([][orderSize]byte, len(orders))
	for i := range orders {
		keys[i] = orders[i].Cookie
		orders[i].encode(values[i][:])
	}
	if len(orders) == 0 {
		return nil, nil
	}
	if _, err := a.orders.BatchUpdate(keys, values, nil); err != nil {
		for _, key := range keys { // the next visit would carry out what is there
			_ = a.orders.Delete(key)
		}
		return nil, fmt.Errorf("give orders for %d sockets: %w", len(orders), err)
	}
	_, err := visit(a.apply)
	results := make([]Result, len(orders))
	for i, key := range keys {
		if e := a.orders.LookupAndDelete(key, &values[i]); e != nil && err == nil {
			err = fmt.Errorf("read what became of an order: %w", e)
		}
		results[i] = result(key, values[i][:])
	}
	return results, err
}

func (o *Order) encode(b []byte) {
	word := func(at int, v uint32) { native.PutUint32(b[at:], v) }
	flags := uint32(0)
	if o.Cwnd > 0 || o.Ssthresh > 0 || o.Acks > 0 {
		flags |= flagKick
	}
	if o.Push {
		flags |= flagPush
	}
	if o.PacingBPS > 0 {
		flags |= flagPacing
		word(orderPacing, uint32(min(o.PacingBPS/8, math.MaxUint32))) //nolint:gosec // bounded
	}
	word(orderFlags, flags)
	word(orderCwnd, o.Cwnd)
	word(orderSsthresh, o.Ssthresh)
	word(orderAcks, min(o.Acks, 3))
	word(orderClamp, o.Clamp)
	word(orderMinRTO, uint32(o.MinRTO.Microseconds())) //nolint:gosec // seconds at most
	word(orderMaxRTO, uint32(o.MaxRTO.Milliseconds())) //nolint:gosec // minutes at most
}

// refusals names what each answer belongs to.
var refusals = [...]struct {
	at   int
	what string
}{
	{returnKick, "window"},
	{returnClamp, "clamp of the window"},
	{returnMinRTO, "least retransmission timeout"},
	{returnMaxRTO, "longest retransmission timeout"},
	{returnPacing, "pacing rate"},
	{returnPush, "push"},
}

func result(cookie uint64, b []byte) Result {
	word := func(at int) uint32 { return native.Uint32(b[at:]) }
	r := Result{
		Cookie: cookie, Done: word(orderDone) != 0,
		CwndBefore: word(orderCwnd0), CwndAfter: word(orderCwnd1),
		SsthreshBefore: word(orderSsthresh0), SsthreshAfter: word(orderSsthresh1),
		ClampBefore: word(orderClamp0), PacingBefore: bits(native.Uint64(b[orderPacing0:])),
	}
	for _, f := range refusals {
		switch e := int32(word(f.at)); { //nolint:gosec // a signed answer
		case e == notCalled:
			r.Refused = append(r.Refused, f.what+": the kernel did not call the kick")
		case e < 0:
			r.Refused = append(r.Refused, f.what+": "+unix.Errno(-e).Error())
		}
	}
	return r
}
