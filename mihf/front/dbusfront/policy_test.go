package dbusfront_test

import (
	"context"
	"encoding/xml"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"

	"mihf.dev/integration/daemons"
	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/busconn"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/front/dbusfront"
	"mihf.dev/proto/dbusapi"
)

// policyFile is what the package installs for the system bus.
const policyFile = "../../../cmd/mihfd/packaging/dbus/dev.mihf.MIHF1.conf"

// Users of the system bus: the service's own, one of its group, and one who is in no group.
var (
	service  = daemons.User{Name: "mihf", UID: 4240, GID: 4240}
	member   = daemons.User{Name: "alice", UID: 4241, GID: 4241, Groups: []uint32{4240}}
	stranger = daemons.User{Name: "bob", UID: 4242, GID: 4242}
)

func dialAs(t *testing.T, u daemons.User) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		var c net.Conn
		err := daemons.As(t, u, func() (err error) {
			c, err = new(net.Dialer).DialContext(ctx, network, address)
			return err
		})
		return c, err
	}
}

// policyBed is a broker on a bus with the policy of a system bus and ours.
func policyBed(t *testing.T, as daemons.User) *bed {
	t.Helper()
	return policyBedWith(t, as, func(*dbusfront.Options) {})
}

func policyBedWith(t *testing.T, as daemons.User, adjust func(*dbusfront.Options)) *bed {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("unsupported: connecting as several users needs root")
	}
	text, err := os.ReadFile(policyFile)
	if err != nil {
		t.Fatal(err)
	}
	w := &bed{T: t, bus: daemons.Bus(t, daemons.BusConfig{System: true, Policies: []string{string(text)}, Users: []daemons.User{service, member, stranger}})}
	w.broker = broker.New(broker.Config{Engine: engine.Defaults(), Version: "test"})
	w.run(w.broker.Run)
	o := dbusfront.Options{Broker: w.broker, Address: func() (string, error) { return w.bus.Address, nil }, Dial: dialAs(t, as)}
	adjust(&o)
	w.server = w.serve(o)
	return w
}

// A user has a share of the connections that the broker knows, which another's use leaves
// alone, and which is free again when one leaves.
func TestShareOfConnections(t *testing.T) {
	w := policyBedWith(t, service, func(o *dbusfront.Options) { o.MaxConnections = 2 })
	idle := w.dialAs(member)
	idle.must("GetSnapshot") // it can be forgotten
	var all []*peer
	for range 2 {
		p := w.dialAs(member)
		p.must("Subscribe", uint64(1), map[string]dbus.Variant{})
		all = append(all, p)
	}
	if _, err := idle.call("GetSnapshot"); !errors.Is(err, mihf.ErrLimit) || !strings.Contains(err.Error(), "max_connections_per_user") {
		t.Errorf("one more: %v", err)
	}
	w.dialAs(service).must("GetSnapshot") // somebody else
	all[0].must("GetSnapshot")
	all[1].Close()
	w.until("there is room again", func() bool { _, err := idle.call("GetSnapshot"); return err == nil })
}

func (w *bed) dialAs(u daemons.User, rules ...string) *peer {
	w.Helper()
	p := &peer{bed: w, heard: make(chan *dbus.Signal, 1<<10)}
	var err error
	p.Conn, err = busconn.Open(w.Context(), w.bus.Address, busconn.Options{MaxMessage: 1 << 20, Dial: dialAs(w.T, u), Signal: func(s *dbus.Signal) { p.heard <- s }})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(p.Close)
	for _, rule := range rules {
		if _, err := p.Bus(w.Context(), "AddMatch", rule); err != nil {
			w.Fatal(err)
		}
	}
	return p
}

// Only the service's user may own the name (D07).
func TestPolicyOfTheName(t *testing.T) {
	w := policyBed(t, stranger)
	w.condition(w.server, mihf.ConditionDenied, "dev.mihf.MIHF1.conf")
	for _, u := range []daemons.User{member, stranger} {
		if _, err := w.dialAs(u).Bus(t.Context(), "RequestName", dbusapi.Name, uint32(0)); !errors.Is(dbusapi.FromReply(err), mihf.ErrPermission) {
			t.Errorf("%s asks for the name: %v", u.Name, err)
		}
	}
	right := w.serve(dbusfront.Options{Broker: w.broker, Address: func() (string, error) { return w.bus.Address, nil }, Dial: dialAs(t, service)})
	w.condition(right, mihf.ConditionOK, "")
}

// Everybody may read and listen; what changes something is for the group (D07).
func TestPolicyOfTheMethods(t *testing.T) {
	w := policyBed(t, service)
	w.condition(w.server, mihf.ConditionOK, "")
	inside, outside := w.dialAs(member), w.dialAs(stranger, everything)
	for _, i := range dbusapi.KindBroker.Interfaces() {
		for _, m := range i.Methods {
			var args []any
			for _, a := range m.Args {
				if a.Direction == "in" {
					args = append(args, zero(a.Type))
				}
			}
			for who, p := range map[string]*peer{"a member": inside, "a stranger": outside} {
				_, err := p.Call(t.Context(), dbusapi.Name, dbusapi.Root, i.Name+"."+m.Name, args...)
				denied := errors.Is(dbusapi.FromReply(err), mihf.ErrPermission) && strings.Contains(err.Error(), "Rejected send message")
				if want := i.Name == dbusapi.BrokerInterface && dbusapi.Control[m.Name] && p == outside; denied != want {
					t.Errorf("%s calls %s.%s: %v; refused by the bus: want %v", who, i.Name, m.Name, err, want)
				}
			}
		}
	}
	w.mark(1)
	outside.next(dbusapi.BrokerInterface + ".ResumedFromSuspend")
	// What reaches the broker is decided there.
	w.see(wlan, facts(true))
	w.until("the link is there", func() bool { _, err := inside.call("GetParameters", string(wlan)); return err == nil })
	_, err := inside.call("ConfigureThresholds", string(wlan), []map[string]dbus.Variant{})
	if !errors.Is(err, mihf.ErrPermission) || !strings.Contains(err.Error(), "4241 lacks the role command") {
		t.Errorf("a command without the role: %v", err)
	}
	reg := inside.must("RegisterFlow", map[string]dbus.Variant{"link": dbus.MakeVariant(string(wlan)), "late_freeze": dbus.MakeVariant(true)})[0].(map[string]dbus.Variant)
	w.see(wlan, facts(false))
	inside.next(dbusapi.FlowInterface + ".Freeze")
	body, err := outside.at(dbusapi.Root, dbusapi.ObjectManager+".GetManagedObjects")
	if err != nil {
		t.Fatal(err)
	}
	if body[0].(map[dbus.ObjectPath]map[string]map[string]dbus.Variant)[dbusapi.FlowPath(mihf.FlowID(reg["flow"].Value().(string)))] != nil {
		t.Error("another user sees the flow")
	}
}

// The policy lists just the methods that there are, so that a new one is decided upon.
func TestPolicyListsTheMethods(t *testing.T) {
	text, err := os.ReadFile(policyFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Policy []struct {
			Context string `xml:"context,attr"`
			Allow   []struct {
				Destination string `xml:"send_destination,attr"`
				Interface   string `xml:"send_interface,attr"`
				Member      string `xml:"send_member,attr"`
			} `xml:"allow"`
		} `xml:"policy"`
	}
	if err := xml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for _, p := range file.Policy {
		for _, a := range p.Allow {
			if p.Context == "default" && a.Destination == dbusapi.Name && a.Interface == dbusapi.BrokerInterface {
				open[a.Member] = true
			}
		}
	}
	for _, i := range dbusapi.KindBroker.Interfaces() {
		for _, m := range i.Methods {
			if i.Name == dbusapi.BrokerInterface && open[m.Name] == dbusapi.Control[m.Name] {
				t.Errorf("%s is open to everybody: %v", m.Name, open[m.Name])
			}
			delete(open, m.Name)
		}
	}
	for name := range open {
		t.Errorf("the policy has %s, which is no method", name)
	}
}
