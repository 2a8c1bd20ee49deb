package modem

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/mihf/busconn"
	"mihf.dev/mihf/clock"
)

// Objects of the fake ModemManager.
const (
	modem0  = dbus.ObjectPath("/org/freedesktop/ModemManager1/Modem/0")
	modem1  = dbus.ObjectPath("/org/freedesktop/ModemManager1/Modem/1")
	bearer0 = dbus.ObjectPath("/org/freedesktop/ModemManager1/Bearer/0")

	cellA = mihf.PoA("26201-1c3d4e5")
	cellB = mihf.PoA("26201-1c3d4e6")
)

// manager is a fake ModemManager with the bus that it is on.
type manager struct {
	mu      sync.Mutex // guards all following fields
	owner   string     // of the service's name; "": it does not run
	objects objects
	bearers map[dbus.ObjectPath]dict
	cells   map[dbus.ObjectPath]string
	fail    map[string]error // by member
	hang    map[string]bool
	slow    map[string]time.Duration // how long an answer is on its way
	asked   []string                 // members, with the last octets of the path
	conn    *fakeBus                 // the newest connection
	absent  error                    // why there is no bus
	links   map[int]mihf.LinkID
}

func newManager(modems ...*fakeModem) *manager {
	mm := &manager{
		owner: ":1.7", objects: objects{}, bearers: map[dbus.ObjectPath]dict{}, cells: map[dbus.ObjectPath]string{},
		fail: map[string]error{}, hang: map[string]bool{}, slow: map[string]time.Duration{}, links: map[int]mihf.LinkID{},
	}
	for _, m := range modems {
		mm.plug(m)
	}
	return mm
}

// fakeModem is what a fake modem has to say.
type fakeModem struct {
	path dbus.ObjectPath
	of   map[string]dict
}

// registered returns a modem that is registered with an LTE cell and has no network interface.
func registered(path dbus.ObjectPath, imei string) *fakeModem {
	v := dbus.MakeVariant
	return &fakeModem{path, map[string]dict{
		modemInterface: {
			"EquipmentIdentifier": v(imei), "DeviceIdentifier": v("d" + imei), "Device": v("/sys/" + imei), "Model": v("LTE-1"),
			"State": v(int32(stateRegistered)), "StateFailedReason": v(uint32(0)), "AccessTechnologies": v(uint32(1 << 14)),
			"SignalQuality": v(struct {
				A uint32
				B bool
			}{60, true}), "Bearers": v([]dbus.ObjectPath{}), "Ports": v([]struct {
				A string
				B uint32
			}{{"ttyUSB0", 3}}),
		},
		gppInterface:      {"RegistrationState": v(uint32(1)), "OperatorCode": v("26201")},
		signalInterface:   {"Rate": v(uint32(0)), "RssiThreshold": v(uint32(0)), "Lte": v(dict{"rsrp": v(-90.0), "rsrq": v(-9.0), "snr": v(-1.7976931348623157e308)})},
		locationInterface: {"Enabled": v(uint32(locationLacCi)), "Location": v(map[uint32]dbus.Variant{})},
	}}
}

// set changes a property before the modem is plugged in.
func (m *fakeModem) set(iface, name string, value any) *fakeModem {
	m.of[iface][name] = dbus.MakeVariant(value)
	return m
}

func (mm *manager) plug(m *fakeModem) {
	mm.objects[m.path] = m.of
	mm.cells[m.path] = "262,01,1A2B,1C3D4E5,0"
}

// change changes the fake without a word.
func (mm *manager) change(f func()) {
	mm.mu.Lock()
	defer mm.mu.Unlock()
	f()
}

// count returns how often a member was called.
func (mm *manager) count(member string) (n int) {
	mm.mu.Lock()
	defer mm.mu.Unlock()
	for _, a := range mm.asked {
		if a == member {
			n++
		}
	}
	return n
}

// emit sends a signal as ModemManager.
func (mm *manager) emit(path dbus.ObjectPath, name string, body ...any) {
	mm.mu.Lock()
	c, owner := mm.conn, mm.owner
	mm.mu.Unlock()
	c.deliver(&dbus.Signal{Sender: owner, Path: path, Name: name, Body: body})
}

// add plugs a modem in while the sensor runs.
func (mm *manager) add(m *fakeModem) {
	mm.change(func() { mm.plug(m) })
	mm.emit(rootPath, objectManager+".InterfacesAdded", m.path, m.of)
}

func (mm *manager) remove(path dbus.ObjectPath) {
	mm.change(func() { delete(mm.objects, path) })
	mm.emit(rootPath, objectManager+".InterfacesRemoved", path, []string{modemInterface, signalInterface})
}

// set changes a property and says so.
func (mm *manager) set(path dbus.ObjectPath, iface, name string, value any) {
	mm.change(func() {
		old := mm.objects[path][iface]
		next := maps.Clone(old)
		next[name] = dbus.MakeVariant(value)
		mm.objects[path][iface] = next
	})
	mm.emit(path, properties+".PropertiesChanged", iface, dict{name: dbus.MakeVariant(value)}, []string{})
}

// state changes a modem's state and says so.
func (mm *manager) state(path dbus.ObjectPath, state int32, reason uint32) {
	var old int32
	mm.change(func() { old, _ = mm.objects[path][modemInterface]["State"].Value().(int32) })
	mm.set(path, modemInterface, "State", state)
	mm.emit(path, modemInterface+".StateChanged", old, state, reason)
}

// bearer sets what the bearer is, and says so.
func (mm *manager) bearer(connected bool, name string) {
	mm.change(func() {
		mm.bearers[bearer0] = dict{"Connected": dbus.MakeVariant(connected), "Interface": dbus.MakeVariant(name)}
	})
	mm.emit(bearer0, properties+".PropertiesChanged", bearerInterface, dict{"Connected": dbus.MakeVariant(connected)}, []string{})
}

// own gives ModemManager's name another owner; "": none.
func (mm *manager) own(owner string) {
	mm.mu.Lock()
	c, old := mm.conn, mm.owner
	mm.owner = owner
	mm.mu.Unlock()
	c.deliver(&dbus.Signal{Sender: busName, Name: busName + ".NameOwnerChanged", Body: []any{service, old, owner}})
}

// fakeBus is one connection to it.
type fakeBus struct {
	mm   *manager
	opt  busconn.Options
	done chan struct{}
	once sync.Once
}

func (mm *manager) dial(_ context.Context, o busconn.Options) (bus, error) {
	mm.mu.Lock()
	defer mm.mu.Unlock()
	if mm.absent != nil {
		return nil, mm.absent
	}
	mm.conn = &fakeBus{mm: mm, opt: o, done: make(chan struct{})}
	return mm.conn, nil
}

// deliver hands a signal over as the connection's reader does.
func (b *fakeBus) deliver(s *dbus.Signal) {
	if b.opt.Heed(s.Sender) {
		body, err := wire(s.Body...)
		if err != nil {
			panic(err)
		}
		s.Body = body
		b.opt.Signal(s)
	}
}

// wire returns a body as it is after the way over a bus.
func wire(body ...any) ([]any, error) {
	msg := &dbus.Message{Type: dbus.TypeMethodReply, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(uint32(1)), dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...)),
	}}
	var b bytes.Buffer
	if err := msg.EncodeTo(&b, binary.LittleEndian); err != nil {
		return nil, err
	}
	b.Bytes()[8] = 1 // the serial
	msg, err := dbus.DecodeMessage(&b)
	if err != nil {
		return nil, err
	}
	return msg.Body, nil
}

func (b *fakeBus) Done() <-chan struct{} { return b.done }

func (b *fakeBus) Close() { b.once.Do(func() { close(b.done) }) }

func (b *fakeBus) Bus(ctx context.Context, method string, args ...any) ([]any, error) {
	return b.Call(ctx, busName, "/", busName+"."+method, args...)
}

func (b *fakeBus) Call(ctx context.Context, dest string, path dbus.ObjectPath, method string, args ...any) ([]any, error) {
	member := method[lastDot(method)+1:]
	b.mm.mu.Lock()
	b.mm.asked = append(b.mm.asked, member)
	hang, fail := b.mm.hang[member], b.mm.fail[member]
	b.mm.mu.Unlock()
	time.Sleep(time.Millisecond)
	if hang {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-b.done:
			return nil, net.ErrClosed
		}
	}
	if fail != nil {
		return nil, fail
	}
	b.mm.mu.Lock()
	if dest != busName && dest != b.mm.owner {
		b.mm.mu.Unlock()
		return nil, dbus.Error{Name: busName + ".Error.ServiceUnknown"}
	}
	body, err := b.mm.answer(path, member, args)
	slow := b.mm.slow[member]
	b.mm.mu.Unlock()
	time.Sleep(slow)
	return body, err
}

func lastDot(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '.' {
			return i
		}
	}
	return -1
}

var errUnknownObject = dbus.Error{Name: "org.freedesktop.DBus.Error.UnknownObject", Body: []any{"no such object"}}

func (mm *manager) answer(path dbus.ObjectPath, member string, args []any) ([]any, error) {
	switch member {
	case "AddMatch":
		return nil, nil
	case "GetNameOwner":
		if mm.owner == "" {
			return nil, dbus.Error{Name: busName + ".Error.NameHasNoOwner"}
		}
		return []any{mm.owner}, nil
	case "GetManagedObjects":
		all := objects{}
		for p, of := range mm.objects {
			all[p] = maps.Clone(of)
		}
		return wire(all)
	case "GetAll":
		d, ok := mm.bearers[path]
		if !ok {
			return nil, errUnknownObject
		}
		return wire(d)
	}
	of, ok := mm.objects[path]
	if !ok {
		return nil, errUnknownObject
	}
	switch member {
	case "GetLocation":
		return wire(map[uint32]dbus.Variant{1: dbus.MakeVariant(mm.cells[path])})
	case "Setup", "SetupThresholds":
		next := maps.Clone(of[signalInterface])
		if member == "Setup" {
			next["Rate"] = dbus.MakeVariant(args[0])
		} else {
			next["RssiThreshold"] = args[0].(dict)["rssi-threshold"]
		}
		of[signalInterface] = next
		return nil, nil
	}
	return nil, errors.New("the fake has no " + member)
}

// sensor returns a sensor on the fake's bus.
func (mm *manager) sensor(set func(*Options)) *Sensor {
	o := Options{
		Clock: clock.Process(), Suspended: func() time.Duration { return 0 },
		Interface: func(name string) (int, bool) {
			index, ok := map[string]int{"wwan0": 7, "wwan1": 8}[name]
			return index, ok
		},
		Link: func(index int) (mihf.LinkID, bool) {
			mm.mu.Lock()
			defer mm.mu.Unlock()
			id, ok := mm.links[index]
			return id, ok
		},
	}
	if set != nil {
		set(&o)
	}
	s := New(o)
	s.dial = mm.dial
	return s
}
