// Package mock is a ModemManager for tests that a bus cannot tell from the real one: it owns the
// name, has an object manager, modems and bearers, answers Signal.Setup, Signal.SetupThresholds
// and Location.GetLocation, and sends the signals. A test uses it for what the real one cannot be
// made to do without the hardware: thresholds that are taken, 5G NR, network interfaces, a
// session that the network ends.
//
// Limits: it has the properties that the test gives it and checks nothing. Any goroutine may
// use it.
package mock

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/godbus/dbus/v5"
)

// Names on the bus.
const (
	Service  = "org.freedesktop.ModemManager1"
	Root     = dbus.ObjectPath("/org/freedesktop/ModemManager1")
	Modem    = Service + ".Modem"
	ThreeGPP = Modem + ".Modem3gpp"
	Signal   = Modem + ".Signal"
	Location = Modem + ".Location"
	Bearer   = Service + ".Bearer"

	properties = "org.freedesktop.DBus.Properties"
	objects    = "org.freedesktop.DBus.ObjectManager"
)

// Properties are those of an interface, by name.
type Properties map[string]any

// Object is what an object of the bus has, by interface.
type Object map[string]Properties

// Manager is a mock. See the package comment.
type Manager struct {
	conn *dbus.Conn

	mu      sync.Mutex // guards the following
	modems  map[dbus.ObjectPath]Object
	bearers map[dbus.ObjectPath]Properties
	refused map[string]string
	calls   []string
}

// Start takes the name on the bus of a connection.
func Start(c *dbus.Conn) (*Manager, error) {
	m := &Manager{conn: c, modems: map[dbus.ObjectPath]Object{}, bearers: map[dbus.ObjectPath]Properties{}, refused: map[string]string{}}
	if err := c.ExportMethodTable(map[string]any{"GetManagedObjects": m.managed}, Root, objects); err != nil {
		return nil, fmt.Errorf("mock: %w", err)
	}
	reply, err := c.RequestName(Service, dbus.NameFlagDoNotQueue)
	if err != nil {
		return nil, fmt.Errorf("mock: %w", err)
	}
	if reply != dbus.RequestNameReplyPrimaryOwner {
		return nil, fmt.Errorf("mock: %s has an owner", Service)
	}
	return m, nil
}

// Phone returns a modem that is registered with an LTE cell, without a network interface.
func Phone(imei string) Object {
	return Object{
		Modem: {
			"EquipmentIdentifier": imei, "DeviceIdentifier": "id-" + imei, "Device": "/sys/devices/" + imei, "Model": "mock",
			"State": int32(8), "StateFailedReason": uint32(0), "AccessTechnologies": uint32(1 << 14), "SignalQuality": quality{60, true},
			"Bearers": []dbus.ObjectPath{}, "Ports": []port{{"ttyUSB0", 3}},
		},
		ThreeGPP: {"RegistrationState": uint32(1), "OperatorCode": "26201", "Imei": imei},
		Signal:   {"Rate": uint32(0), "RssiThreshold": uint32(0), "Lte": Numbers("rsrp", -90, "rsrq", -9)},
		Location: {"Enabled": uint32(1), "Location": map[uint32]dbus.Variant{}, "cell": "262,01,1A2B,1C3D4E5,0"},
	}
}

// Interface gives a modem a network interface, and that to a bearer which is connected.
func (o Object) Interface(name string, bearer dbus.ObjectPath) Object {
	o[Modem]["Ports"] = []port{{"cdc-wdm0", 6}, {name, 2}}
	o[Modem]["Bearers"] = []dbus.ObjectPath{bearer}
	o[Modem]["State"] = int32(11)
	return o
}

type quality struct {
	Percent uint32
	Recent  bool
}

type port struct {
	Name string
	Kind uint32
}

// Numbers makes a dictionary of names and values, as the technologies of Signal are.
func Numbers(pairs ...any) map[string]dbus.Variant {
	d := map[string]dbus.Variant{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v := 0.0
		switch n := pairs[i+1].(type) {
		case int:
			v = float64(n)
		case float64:
			v = n
		}
		d[fmt.Sprint(pairs[i])] = dbus.MakeVariant(v)
	}
	return d
}

// Refuse makes a method fail with the named error of ModemManager's core, "Unsupported" for
// example.
func (m *Manager) Refuse(method, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused[method] = name
}

// Calls returns the methods that were called on modems, oldest first.
func (m *Manager) Calls() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}

// Property returns a property of a modem.
func (m *Manager) Property(path dbus.ObjectPath, iface, name string) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.modems[path][iface][name]
}

// Add adds a modem.
func (m *Manager) Add(path dbus.ObjectPath, o Object) error {
	for iface, methods := range map[string]map[string]any{
		Signal: {
			"Setup": func(rate uint32) *dbus.Error { return m.configure(path, "Setup", "Rate", rate) },
			"SetupThresholds": func(d map[string]dbus.Variant) *dbus.Error {
				v, _ := d["rssi-threshold"].Value().(uint32)
				return m.configure(path, "SetupThresholds", "RssiThreshold", v)
			},
		},
		Location: {"GetLocation": func() (map[uint32]dbus.Variant, *dbus.Error) { return m.located(path) }},
	} {
		if err := m.conn.ExportMethodTable(methods, path, iface); err != nil {
			return fmt.Errorf("mock: %w", err)
		}
	}
	m.mu.Lock()
	m.modems[path] = o
	m.mu.Unlock()
	return m.conn.Emit(Root, objects+".InterfacesAdded", path, o.variants())
}

// Remove takes a modem away, with its methods.
func (m *Manager) Remove(path dbus.ObjectPath) error {
	m.mu.Lock()
	var names []string
	for name := range m.modems[path] {
		names = append(names, name)
	}
	delete(m.modems, path)
	m.mu.Unlock()
	for _, name := range []string{Signal, Location} {
		if err := m.conn.Export(nil, path, name); err != nil {
			return fmt.Errorf("mock: %w", err)
		}
	}
	return m.conn.Emit(Root, objects+".InterfacesRemoved", path, names)
}

// Set changes a property of a modem, and says so.
func (m *Manager) Set(path dbus.ObjectPath, iface, name string, value any) error {
	m.mu.Lock()
	m.modems[path][iface][name] = value
	m.mu.Unlock()
	return m.conn.Emit(path, properties+".PropertiesChanged", iface, map[string]dbus.Variant{name: dbus.MakeVariant(value)}, []string{})
}

// State changes a modem's state with a reason, and says so twice, as ModemManager does.
func (m *Manager) State(path dbus.ObjectPath, state int32, reason uint32) error {
	old, _ := m.Property(path, Modem, "State").(int32)
	if err := m.Set(path, Modem, "State", state); err != nil {
		return err
	}
	return m.conn.Emit(path, Modem+".StateChanged", old, state, reason)
}

// Bearer makes a bearer, or changes it and says so.
func (m *Manager) Bearer(path dbus.ObjectPath, connected bool, name string) error {
	p := Properties{"Connected": connected, "Interface": name}
	m.mu.Lock()
	_, had := m.bearers[path]
	m.bearers[path] = p
	m.mu.Unlock()
	if had {
		return m.conn.Emit(path, properties+".PropertiesChanged", Bearer, p.variants(), []string{})
	}
	return m.conn.ExportMethodTable(map[string]any{"GetAll": func(string) (map[string]dbus.Variant, *dbus.Error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.bearers[path].variants(), nil
	}}, path, properties)
}

func (m *Manager) managed() (map[dbus.ObjectPath]map[string]map[string]dbus.Variant, *dbus.Error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[dbus.ObjectPath]map[string]map[string]dbus.Variant{}
	for path, o := range m.modems {
		all[path] = o.variants()
	}
	return all, nil
}

// call notes a call and says whether it is refused.
func (m *Manager) call(method string) *dbus.Error {
	m.calls = append(m.calls, method)
	if name := m.refused[method]; name != "" {
		return &dbus.Error{Name: Service + ".Error.Core." + name, Body: []any{method + ": refused"}}
	}
	return nil
}

func (m *Manager) configure(path dbus.ObjectPath, method, property string, value uint32) *dbus.Error {
	m.mu.Lock()
	if err := m.call(method); err != nil {
		m.mu.Unlock()
		return err
	}
	m.mu.Unlock()
	if err := m.Set(path, Signal, property, value); err != nil {
		return dbus.MakeFailedError(err)
	}
	return nil
}

func (m *Manager) located(path dbus.ObjectPath) (map[uint32]dbus.Variant, *dbus.Error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.call("GetLocation"); err != nil {
		return nil, err
	}
	return map[uint32]dbus.Variant{1: dbus.MakeVariant(m.modems[path][Location]["cell"])}, nil
}

func (o Object) variants() map[string]map[string]dbus.Variant {
	all := map[string]map[string]dbus.Variant{}
	for name, p := range o {
		all[name] = p.variants()
	}
	return all
}

// variants leaves out what is the mock's own.
func (p Properties) variants() map[string]dbus.Variant {
	all := map[string]dbus.Variant{}
	for name, v := range maps.All(p) {
		if name != "cell" {
			all[name] = dbus.MakeVariant(v)
		}
	}
	return all
}
