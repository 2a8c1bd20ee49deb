package dbusfront_test

import (
	"encoding/xml"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/introspect"
	"github.com/google/go-cmp/cmp"

	"mihf.dev/mihf"
	"mihf.dev/proto/dbusapi"
)

// nodes introspects everything from the root of the paths on.
func (p *peer) nodes(path dbus.ObjectPath) map[dbus.ObjectPath]introspect.Node {
	p.Helper()
	body, err := p.at(path, dbusapi.Introspectable+".Introspect")
	if err != nil {
		p.Fatalf("introspecting %s: %v", path, err)
	}
	var n introspect.Node
	if err := xml.Unmarshal([]byte(body[0].(string)), &n); err != nil {
		p.Fatal(err)
	}
	all := map[dbus.ObjectPath]introspect.Node{path: n}
	for _, c := range n.Children {
		maps.Copy(all, p.nodes(dbus.ObjectPath(strings.TrimSuffix(string(path), "/"))+"/"+dbus.ObjectPath(c.Name)))
	}
	return all
}

// zero is a value of a type, as good as none.
func zero(signature string) any {
	switch signature {
	case "s":
		return ""
	case "t":
		return uint64(0)
	case "v":
		return dbus.MakeVariant("")
	case "a{sv}":
		return map[string]dbus.Variant{}
	case "aa{sv}":
		return []map[string]dbus.Variant{}
	}
	panic(signature)
}

// What introspection lists is what is served: every object, method and property.
func TestIntrospection(t *testing.T) {
	w := newBed(t, nil)
	p := w.dial()
	w.see(wlan, facts(true))
	w.until("the link is there", func() bool { _, err := p.call("GetParameters", string(wlan)); return err == nil })
	flow := p.must("RegisterFlow", map[string]dbus.Variant{"link": dbus.MakeVariant(string(wlan))})[0].(map[string]dbus.Variant)["flow"].Value().(string)
	all := p.nodes("/")
	want := []dbus.ObjectPath{
		"/", "/dev", "/dev/mihf", "/dev/mihf/MIHF1", "/dev/mihf/MIHF1/Flow", dbusapi.FlowPath(mihf.FlowID(flow)),
		"/dev/mihf/MIHF1/Link", "/dev/mihf/MIHF1/Link/wifi_2d00000001",
	}
	for _, path := range want {
		n, ok := all[path]
		if !ok {
			t.Errorf("%s is not found", path)
		}
		delete(all, path)
		for _, i := range n.Interfaces {
			for _, m := range i.Methods {
				p.tryMethod(path, i.Name, &m)
			}
			p.tryProperties(path, &i)
		}
	}
	for path := range all {
		t.Errorf("%s is found too", path)
	}
	if c := w.server.Counts(); c.Panics != 0 || c.EncodeErrors != 0 {
		t.Errorf("%+v", c)
	}
}

// tryMethod calls a method with arguments of its types, and with one too many.
func (p *peer) tryMethod(path dbus.ObjectPath, iface string, m *introspect.Method) {
	p.Helper()
	var args []any
	var answers strings.Builder
	for _, a := range m.Args {
		if a.Direction == "in" {
			args = append(args, zero(a.Type))
		} else {
			answers.WriteString(a.Type)
		}
	}
	if iface == dbusapi.Properties {
		args[0] = dbusapi.Introspectable // an interface that every object has
	}
	body, err := p.Call(p.Context(), dbusapi.Name, path, iface+"."+m.Name, args...)
	var refused dbus.Error
	if errors.As(err, &refused) {
		if slices.Contains([]string{dbusapi.ErrorUnknownMethod, dbusapi.ErrorUnknownInterface, dbusapi.ErrorUnknownObject, dbusapi.ErrorFailed}, refused.Name) ||
			strings.Contains(refused.Error(), "the arguments are") {
			if m.Name != "GetMachineId" || refused.Name != dbusapi.ErrorFailed {
				p.Errorf("%s %s.%s: %v", path, iface, m.Name, err)
			}
		}
	} else if err != nil {
		p.Errorf("%s %s.%s: %v", path, iface, m.Name, err)
	} else if got := dbus.SignatureOf(body...).String(); got != answers.String() {
		p.Errorf("%s %s.%s answers %s, want %s", path, iface, m.Name, got, answers.String())
	}
	if iface == dbusapi.Peer {
		return
	}
	_, err = p.at(path, iface+"."+m.Name, append(args, "one too many")...)
	if !errors.Is(err, mihf.ErrInvalid) || !strings.Contains(err.Error(), "the arguments are") {
		p.Errorf("%s %s.%s with an argument too many: %v", path, iface, m.Name, err)
	}
}

// tryProperties gets every property that is known, and sets none.
func (p *peer) tryProperties(path dbus.ObjectPath, i *introspect.Interface) {
	p.Helper()
	if !strings.HasPrefix(i.Name, dbusapi.Name) {
		return
	}
	body, err := p.at(path, dbusapi.Properties+".GetAll", i.Name)
	if err != nil {
		p.Fatal(err)
	}
	all := body[0].(map[string]dbus.Variant)
	for _, x := range i.Properties {
		v, known := all[x.Name]
		delete(all, x.Name)
		got, err := p.at(path, dbusapi.Properties+".Get", i.Name, x.Name)
		switch {
		case !known && !errors.Is(err, mihf.ErrNotFound):
			p.Errorf("%s %s is not known: %v", path, x.Name, err)
		case known && (err != nil || v.Signature().String() != x.Type || !cmp.Equal(got[0].(dbus.Variant).Value(), v.Value())):
			p.Errorf("%s %s is %v by itself, %v of all, want type %s; %v", path, x.Name, got, v, x.Type, err)
		}
		if _, err := p.at(path, dbusapi.Properties+".Set", i.Name, x.Name, dbus.MakeVariant("x")); err == nil || !strings.Contains(err.Error(), "only be read") {
			p.Errorf("%s %s is set: %v", path, x.Name, err)
		}
	}
	for name := range all {
		p.Errorf("%s has a property %s that is not listed", path, name)
	}
}

// What is not there is refused by name, and nothing else is the matter (D09).
func TestUnknown(t *testing.T) {
	w := newBed(t, nil)
	p := w.dial()
	for _, tc := range []struct {
		path          dbus.ObjectPath
		iface, member string
		want          string
	}{
		{"/dev/mihf/MIHF1/Link/wifi_2d00000009", dbusapi.Properties, "GetAll", dbusapi.ErrorUnknownObject},
		{"/dev/mihf/MIHF1/Flow/x", dbusapi.Introspectable, "Introspect", dbusapi.ErrorUnknownObject},
		{"/dev/mihf/MIHF1/Link/wifi-0", dbusapi.Introspectable, "Introspect", ""}, // not a path
		{"/org", dbusapi.Introspectable, "Introspect", dbusapi.ErrorUnknownObject},
		{dbusapi.Root, "a.b", "C", dbusapi.ErrorUnknownInterface},
		{dbusapi.Root, dbusapi.BrokerInterface, "Explode", dbusapi.ErrorUnknownMethod},
		{"/dev/mihf", dbusapi.Properties, "GetAll", dbusapi.ErrorUnknownInterface},
		{dbusapi.Root, dbusapi.Peer, "Explode", dbusapi.ErrorUnknownMethod},
	} {
		_, err := p.Call(t.Context(), dbusapi.Name, tc.path, tc.iface+"."+tc.member)
		var got dbus.Error
		if errors.As(err, &got); got.Name != tc.want {
			t.Errorf("%s %s.%s: %v (%s), want %s", tc.path, tc.iface, tc.member, err, got.Name, tc.want)
		}
	}
	if n := w.server.Counts().Malformed; n != 7 {
		t.Errorf("%d malformed calls were counted, want 7", n)
	}
}
