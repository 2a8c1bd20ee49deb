package daemons

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/godbus/dbus/v5"
)

// modemManager is ModemManager's name on a bus.
const modemManager = "org.freedesktop.ModemManager1"

// A ModemService is a ModemManager on a private bus, without udev: it has the modems that
// [ModemService.Profile] gives it.
type ModemService struct {
	Daemon
	bus *MessageBus
}

// ModemManager starts a ModemManager that ends with the test, and skips the test where there
// is none.
func ModemManager(t testing.TB, b *MessageBus) *ModemService {
	t.Helper()
	m := &ModemService{bus: b}
	m.Daemon = Daemon{t: t, command: func() *exec.Cmd {
		cmd := Command(t, "ModemManager", "--test-session", "--test-enable", "--test-no-udev", "--test-no-suspend-resume", "--test-no-qrtr", "--debug")
		// Debian's plugins lie beside the program's libraries, where it was unpacked.
		plugins, err := filepath.Glob(filepath.Join(filepath.Dir(cmd.Path), "..", "lib", "*-linux-*", "ModemManager"))
		if err == nil && len(plugins) == 1 {
			cmd.Args = append(cmd.Args, "--test-plugin-dir="+plugins[0])
		}
		if cmd.Env == nil {
			cmd.Env = os.Environ()
		}
		cmd.Env = append(cmd.Env, "DBUS_SESSION_BUS_ADDRESS="+b.Address, "DBUS_SYSTEM_BUS_ADDRESS="+b.Address)
		return cmd
	}, ready: func(p *process) {
		t.Helper()
		awaitName(t, b, modemManager, p)
	}}
	m.start()
	return m
}

// dial connects to the bus for a moment: [DialBus]'s connections last as long as the test.
func (m *ModemService) dial() *dbus.Conn {
	m.t.Helper()
	c, err := dbus.Connect(m.bus.Address)
	if err != nil {
		m.t.Fatalf("daemons: connect to %s: %v", m.bus.Address, err)
	}
	return c
}

// Profile gives ModemManager a modem: its name, and the unix sockets of its ports. It is
// forgotten with a restart.
func (m *ModemService) Profile(name string, ports ...string) {
	m.t.Helper()
	c := m.dial()
	defer func() { _ = c.Close() }() // the bus may be gone
	call := c.Object(modemManager, "/org/freedesktop/ModemManager1").Call(modemManager+".Test.SetProfile", 0, name, "generic", ports)
	if call.Err != nil {
		m.t.Fatalf("daemons: give ModemManager a modem: %v", call.Err)
	}
}

// Call calls a method of one of ModemManager's objects as a user's program would.
func (m *ModemService) Call(path dbus.ObjectPath, method string, args ...any) ([]any, error) {
	m.t.Helper()
	c := m.dial()
	defer func() { _ = c.Close() }() // the bus may be gone
	call := c.Object(modemManager, path).Call(modemManager+"."+method, 0, args...)
	return call.Body, call.Err
}
