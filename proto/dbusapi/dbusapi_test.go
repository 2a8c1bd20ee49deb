package dbusapi

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/introspect"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

// "An object's path can be turned back into the id that it was made of, whatever octets
// that has", and is a path.
func TestPaths(t *testing.T) {
	if p := LinkPath("wifi-3fa9c01d"); p != "/dev/mihf/MIHF1/Link/wifi_2d3fa9c01d" {
		t.Error(p)
	}
	rapid.Check(t, func(rt *rapid.T) {
		id := string(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(rt, "id"))
		p := FlowPath(mihf.FlowID(id))
		if !p.IsValid() {
			rt.Fatalf("%q is not a path", p)
		}
		got, ok := ParseFlowPath(p)
		if !ok || string(got) != id {
			rt.Fatalf("%q came back as %q, %v", id, got, ok)
		}
		if _, ok := ParseLinkPath(p); ok {
			rt.Fatal("a flow's path is a link's")
		}
	})
}

// A path has one spelling, and nothing else is one.
func FuzzUnescape(f *testing.F) {
	for _, s := range []string{"_", "wifi_2d3fa9c01d", "a_61", "_2D", "_2", "a-b", "", "_5f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, label string) {
		if id, ok := Unescape(label); ok && Escape(id) != label {
			t.Errorf("%q is read as %q, which is written %q", label, id, Escape(id))
		}
	})
}

// "Each error of the vocabulary has one name, and that name gives the error back."
func TestErrors(t *testing.T) {
	for _, want := range []error{
		mihf.ErrPermission, mihf.ErrNotFound, mihf.ErrInvalid, mihf.ErrLimit, mihf.ErrExists, mihf.ErrSlow, mihf.ErrClosed, context.DeadlineExceeded,
	} {
		name := ErrorName(fmt.Errorf("because: %w", want))
		got := FromReply(dbus.Error{Name: name, Body: []any{"why"}})
		if !errors.Is(got, want) || got.Error() != "why" || name == ErrorFailed {
			t.Errorf("%v is %s and comes back as %v", want, name, got)
		}
	}
	if err := FromReply(dbus.Error{Name: "org.freedesktop.DBus.Error.ServiceUnknown"}); !errors.Is(err, mihf.ErrClosed) || err.Error() == "" {
		t.Error(err)
	}
	if err := FromReply(dbus.Error{Name: ErrorFailed, Body: []any{5}}); err.Error() != ErrorFailed {
		t.Error(err)
	}
	if err := FromReply(context.Canceled); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Every kind of event and hint has its signal, on one interface.
func TestEverythingHasASignal(t *testing.T) {
	where := map[string][]string{}
	for _, k := range []Kind{KindBroker, KindLink, KindFlow} {
		for _, i := range k.Interfaces() {
			for _, s := range i.Signals {
				where[s.Name] = append(where[s.Name], i.Name)
			}
		}
	}
	for k := mihf.Kind(1); int(k) < mihf.NumKinds; k++ {
		want := LinkInterface
		if OfNoLink.Has(k) {
			want = BrokerInterface
		}
		if got := where[EventSignal(k)]; !slices.Equal(got, []string{want}) {
			t.Errorf("%v: %s on %v, want %s", k, EventSignal(k), got, want)
		}
	}
	for k := mihf.HintFreeze; mihf.AllHints.Has(k); k++ {
		if got := where[HintSignal(k)]; !slices.Equal(got, []string{FlowInterface}) {
			t.Errorf("%v: %s on %v", k, HintSignal(k), got)
		}
	}
	if EventSignal(mihf.LinkGoingDown) != "LinkGoingDown" {
		t.Error(EventSignal(mihf.LinkGoingDown))
	}
}

func TestFind(t *testing.T) {
	for _, tc := range []struct {
		kind                    Kind
		iface, member           string
		where, signature        string
		found, interfaceIsKnown bool
	}{
		{KindBroker, BrokerInterface, "ConfigureThresholds", BrokerInterface, "saa{sv}", true, true},
		{KindBroker, "", "GetSnapshot", BrokerInterface, "", true, true},
		{KindBroker, BrokerInterface, "Nothing", "", "", false, true},
		{KindLink, BrokerInterface, "GetSnapshot", "", "", false, false},
		{KindLink, Properties, "Get", Properties, "ss", true, true},
		{KindNode, Introspectable, "Introspect", Introspectable, "", true, true},
		{KindNode, Properties, "Get", "", "", false, false},
	} {
		where, signature, found, known := tc.kind.Find(tc.iface, tc.member)
		if where != tc.where || signature != tc.signature || found != tc.found || known != tc.interfaceIsKnown {
			t.Errorf("%+v: %s, %s, %v, %v", tc, where, signature, found, known)
		}
	}
}

func TestXML(t *testing.T) {
	for _, k := range []Kind{KindNode, KindBroker, KindLink, KindFlow} {
		text, err := k.XML([]string{"wifi_2d3fa9c01d"})
		if err != nil {
			t.Fatal(err)
		}
		var n introspect.Node
		if err := xml.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		if len(n.Interfaces) != len(k.Interfaces()) || len(n.Children) != 1 || !strings.HasPrefix(text, "<!DOCTYPE") {
			t.Errorf("%s", text)
		}
		for _, i := range n.Interfaces {
			for _, m := range i.Methods {
				for _, a := range m.Args {
					if _, err := dbus.ParseSignature(a.Type); err != nil || a.Name == "" || a.Direction == "" {
						t.Errorf("%s.%s: argument %+v: %v", i.Name, m.Name, a, err)
					}
				}
			}
		}
	}
	for name := range Control {
		if _, _, found, _ := KindBroker.Find(BrokerInterface, name); !found {
			t.Errorf("%s is not a method", name)
		}
	}
}
