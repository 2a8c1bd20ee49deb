package modem

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/godbus/dbus/v5"

	"mihf.dev/integration/daemons"
	"mihf.dev/integration/modem/mock"
)

// managersPolicy is what matters of the bus policy that ModemManager 1.20 installs.
const managersPolicy = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <policy context="default">
    <deny send_destination="org.freedesktop.ModemManager1" send_type="method_call"/>
    <allow send_destination="org.freedesktop.ModemManager1" send_interface="org.freedesktop.DBus.ObjectManager"/>
    <allow send_destination="org.freedesktop.ModemManager1" send_interface="org.freedesktop.ModemManager1.Modem.Signal" send_member="Setup"/>
  </policy>
  <policy user="root">
    <allow own="org.freedesktop.ModemManager1"/>
    <allow send_destination="org.freedesktop.ModemManager1"/>
  </policy>
</busconfig>
`

// What the daemon's user may call on a system bus: all that the sensor calls, with the policy that
// is shipped, and all but thresholds without.
func TestPolicyOfModems(t *testing.T) {
	ours, err := os.ReadFile(filepath.Join("..", "..", "cmd", "mihfd", "packaging", "dbus", "dev.mihf.ModemManager.conf"))
	if err != nil {
		t.Fatal(err)
	}
	const uid = 61337
	for _, c := range []struct {
		name     string
		policies []string
		allowed  bool
	}{{"shipped", []string{managersPolicy, string(ours)}, true}, {"without", []string{managersPolicy}, false}} {
		t.Run(c.name, func(t *testing.T) {
			b := daemons.Bus(t, daemons.BusConfig{System: true, Policies: c.policies, Users: []daemons.User{{Name: "mihf", UID: uid, GID: uid}}})
			m, err := mock.Start(daemons.DialBus(t, b))
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Add(path("0"), mock.Phone(imei)); err != nil {
				t.Fatal(err)
			}
			conn := daemons.DialBusAs(t, b, uid)
			for _, call := range []struct {
				path    dbus.ObjectPath
				method  string
				args    []any
				allowed bool
			}{
				{mock.Root, "org.freedesktop.DBus.ObjectManager.GetManagedObjects", nil, true},
				{path("0"), mock.Signal + ".Setup", []any{uint32(5)}, true},
				{path("0"), mock.Signal + ".SetupThresholds", []any{map[string]dbus.Variant{}}, c.allowed},
			} {
				if err := conn.Object(mock.Service, call.path).Call(call.method, 0, call.args...).Err; (err == nil) != call.allowed {
					t.Errorf("%s: %v", call.method, err)
				}
			}
		})
	}
}
