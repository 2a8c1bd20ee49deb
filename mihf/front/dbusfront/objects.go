package dbusfront

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/mihf/busconn"
	"mihf.dev/proto/dbusapi"
)

// properties are those of one object's own interface. What is not known has none.
type properties map[string]dbus.Variant

func (p properties) set(name string, v any) { p[name] = dbus.MakeVariant(v) }

// setText sets a property unless the text is empty.
func (p properties) setText(name, text string) {
	if text != "" {
		p.set(name, mihf.EscapeString(text))
	}
}

// setOctets sets a property of octets and, beside it, their text for people.
func (p properties) setOctets(name string, octets []byte) {
	p.set(name, octets)
	p.set(name+"Text", mihf.Escape(octets))
}

// linkProperties are those of a link.
func linkProperties(l *mihf.LinkStatus) properties {
	p := properties{}
	p.set("Id", string(l.Link))
	p.set("Type", l.Link.Type().String())
	p.set("Up", l.Up)
	p.set("UsableIPv4", l.UsableIPv4)
	p.set("UsableIPv6", l.UsableIPv6)
	p.set("HoldDown", l.HoldDown)
	p.setText("PoA", string(l.PoA))
	if l.SSID != nil {
		p.setOctets("SSID", l.SSID)
	}
	if l.Association != 0 {
		p.set("Association", l.Association.String())
	}
	p.setText("Technology", l.Technology)
	if f := l.Facts; f != nil {
		p.setOctets("Name", []byte(f.Name))
		if f.MTUBytes > 0 {
			p.set("MTUBytes", uint32(f.MTUBytes)) //nolint:gosec // the kernel's has 32 bits
		}
	}
	if open, ok := l.Prediction.Get(); ok {
		p.set("Prediction", open.ID.String())
	}
	return p
}

// flowProperties are those of a flow.
func flowProperties(f *mihf.FlowStatus) properties {
	p := properties{}
	p.set("Id", string(f.Spec.ID))
	p.setText("Link", string(f.Link))
	p.set("Frozen", f.Frozen)
	p.set("Epoch", f.Epoch)
	p.set("LeadNs", int64(f.Lead))
	if f.Acknowledged != 0 {
		p.set("AcknowledgedEpoch", f.Acknowledged)
		p.set("LastAck", f.LastAck.String())
	}
	return p
}

// object is what a path leads to, as one caller sees it.
type object struct {
	kind     dbusapi.Kind
	own      func() (properties, error) // of its own interface; nil: it has none
	children func() ([]string, error)
}

// find returns the object at a path.
func (p *peer) find(who mihf.Caller, path dbus.ObjectPath) (object, error) {
	fixed := func(names ...string) func() ([]string, error) {
		return func() ([]string, error) { return names, nil }
	}
	switch path {
	case dbusapi.Root:
		return object{dbusapi.KindBroker, func() (properties, error) { return p.brokerProperties(who) }, fixed("Flow", "Link")}, nil
	case dbusapi.LinkTree, dbusapi.FlowTree:
		return object{dbusapi.KindNode, nil, func() ([]string, error) { return p.below(who, path) }}, nil
	}
	if link, ok := dbusapi.ParseLinkPath(path); ok {
		l, err := p.b.s.o.Broker.Parameters(p.ctx, who, link)
		if err == nil {
			return object{dbusapi.KindLink, func() (properties, error) { return linkProperties(&l), nil }, fixed()}, nil
		}
		if !errors.Is(err, mihf.ErrNotFound) {
			return object{}, err
		}
	}
	if flow, ok := dbusapi.ParseFlowPath(path); ok {
		if f, err := p.flow(who, flow); f != nil || err != nil {
			return object{dbusapi.KindFlow, func() (properties, error) { return flowProperties(f), nil }, fixed()}, err
		}
	}
	if next, ok := strings.CutPrefix(string(dbusapi.Root), strings.TrimSuffix(string(path), "/")+"/"); ok {
		name, _, _ := strings.Cut(next, "/")
		return object{dbusapi.KindNode, nil, fixed(name)}, nil
	}
	return object{}, refuse(dbusapi.ErrorUnknownObject, "there is no object %.200s", path)
}

// flow returns a flow that the caller may see; nil: there is none.
func (p *peer) flow(who mihf.Caller, id mihf.FlowID) (*mihf.FlowStatus, error) {
	snap, err := p.b.s.o.Broker.Snapshot(p.ctx, who)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(snap.Flows, func(f mihf.FlowStatus) bool { return f.Spec.ID == id })
	if i < 0 {
		return nil, nil
	}
	return &snap.Flows[i], nil
}

func (p *peer) brokerProperties(who mihf.Caller) (properties, error) {
	st, err := p.b.s.o.Broker.Status(p.ctx, who)
	if err != nil {
		return nil, err
	}
	props := properties{}
	props.setText("Node", string(st.Node))
	props.set("BootId", st.Boot.String())
	props.setText("Version", st.Version)
	return props, nil
}

// below returns the elements of the paths in a tree.
func (p *peer) below(who mihf.Caller, tree dbus.ObjectPath) ([]string, error) {
	snap, err := p.b.s.o.Broker.Snapshot(p.ctx, who)
	if err != nil {
		return nil, err
	}
	var names []string
	if tree == dbusapi.LinkTree {
		for i := range snap.Links {
			names = append(names, dbusapi.Escape(string(snap.Links[i].Link)))
		}
	} else {
		for i := range snap.Flows {
			names = append(names, dbusapi.Escape(string(snap.Flows[i].Spec.ID)))
		}
	}
	slices.Sort(names)
	return names, nil
}

func (o *object) introspect() (answer, error) {
	names, err := o.children()
	if err != nil {
		return answer{}, err
	}
	text, err := o.kind.XML(names)
	if err != nil {
		return answer{}, err
	}
	return give(text)
}

// property is org.freedesktop.DBus.Properties.
func (o *object) property(c *busconn.Call, args []any) (answer, error) {
	iface, _ := args[0].(string)
	if !slices.ContainsFunc(o.kind.InterfaceNames(), func(name string) bool { return name == iface }) {
		return answer{}, refuse(dbusapi.ErrorUnknownInterface, "%s has no interface %.80q", c.Path, iface)
	}
	all := properties{}
	if iface == o.kind.Own() {
		var err error
		if all, err = o.own(); err != nil {
			return answer{}, err
		}
	}
	if c.Member == "GetAll" {
		return give(map[string]dbus.Variant(all))
	}
	name, _ := args[1].(string)
	if c.Member == "Set" {
		return answer{}, refuse(dbusapi.ErrorReadOnly, "%.80q can only be read", name)
	}
	v, ok := all[name]
	if !ok {
		return answer{}, refuse(dbusapi.ErrorUnknownProperty, "%.80q of %s is not known", name, c.Path)
	}
	return give(v)
}

// objects are the objects of a snapshot with the properties of their own interfaces.
type objects map[dbus.ObjectPath]map[string]map[string]dbus.Variant

func objectsOf(snap *mihf.Snapshot) objects {
	all := objects{}
	for i := range snap.Links {
		l := &snap.Links[i]
		all[dbusapi.LinkPath(l.Link)] = map[string]map[string]dbus.Variant{dbusapi.LinkInterface: linkProperties(l)}
	}
	for i := range snap.Flows {
		f := &snap.Flows[i]
		all[dbusapi.FlowPath(f.Spec.ID)] = map[string]map[string]dbus.Variant{dbusapi.FlowInterface: flowProperties(f)}
	}
	return all
}

// managed is GetManagedObjects.
func (p *peer) managed(who mihf.Caller) (answer, error) {
	snap, err := p.b.s.o.Broker.Snapshot(p.ctx, who)
	if err != nil {
		return answer{}, err
	}
	return give(map[dbus.ObjectPath]map[string]map[string]dbus.Variant(objectsOf(snap)))
}

// difference returns what changed from old to these, and which are not known any more.
func (p properties) difference(old properties) (changed map[string]dbus.Variant, invalidated []string) {
	changed, invalidated = map[string]dbus.Variant{}, []string{}
	for name, v := range p {
		if before, ok := old[name]; !ok || !same(before, v) {
			changed[name] = v
		}
	}
	for name := range maps.Keys(old) {
		if _, ok := p[name]; !ok {
			invalidated = append(invalidated, name)
		}
	}
	slices.Sort(invalidated)
	return changed, invalidated
}

// same compares two values of one property.
func same(a, b dbus.Variant) bool {
	if x, ok := a.Value().([]byte); ok {
		y, _ := b.Value().([]byte)
		return slices.Equal(x, y)
	}
	return a.Value() == b.Value()
}
