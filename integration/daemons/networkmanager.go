package daemons

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"mihf.dev/integration/netns"
)

// networkManager is NetworkManager's name on a bus.
const networkManager = "org.freedesktop.NetworkManager"

// A NetworkService is a NetworkManager on a private bus, for the interfaces of a network namespace.
type NetworkService struct {
	Daemon
	bus *MessageBus
}

// NetworkManager starts a NetworkManager in a namespace that ends with the test. It knows the
// given connections, texts of keyfiles by name, and makes none by itself. It sees the host's
// files, but its own /sys, and a /run and /var/lib that outlive its restarts. The test is skipped where there is none, or where
// the user may not make the mounts.
func NetworkManager(t testing.TB, b *MessageBus, ns *netns.NS, connections map[string]string) *NetworkService {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip(fmt.Errorf("%w: mounts for a NetworkManager need root", ErrUnsupported))
	}
	dir := shortDir(t)
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal("daemons:", err)
		}
	}
	write("nm.conf", fmt.Sprintf(networkConfig, filepath.Join(dir, "connections")))
	for _, folder := range []string{"empty", "run", "lib/NetworkManager"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal("daemons:", err)
		}
	}
	for name, text := range connections {
		write("connections/"+name+".nmconnection", text)
	}
	n := &NetworkService{bus: b}
	n.Daemon = Daemon{t: t, enter: func() error { return errors.Join(ns.Enter(), networkMounts(dir)) }, command: func() *exec.Cmd {
		empty := filepath.Join(dir, "empty")
		cmd := Command(t, "NetworkManager", "--no-daemon", "--config="+filepath.Join(dir, "nm.conf"), "--config-dir="+empty,
			"--system-config-dir="+empty, "--intern-config="+filepath.Join(dir, "intern"), "--state-file="+filepath.Join(dir, "state"),
			"--pid-file="+filepath.Join(dir, "pid"))
		if cmd.Env == nil {
			cmd.Env = os.Environ()
		}
		cmd.Env = append(cmd.Env, "DBUS_SYSTEM_BUS_ADDRESS="+b.Address)
		return cmd
	}, ready: func(p *process) {
		t.Helper()
		awaitName(t, b, networkManager, p)
	}}
	n.start()
	return n
}

const networkConfig = `[main]
plugins=keyfile
dns=none
rc-manager=unmanaged
dhcp=internal
no-auto-default=*
auth-polkit=false
[keyfile]
path=%s
[logging]
level=INFO
`

// networkMounts gives the calling thread a /sys of its network namespace, read-only, by which
// NetworkManager knows that there is no udev for it, and a /run and /var/lib of the test.
func networkMounts(dir string) error {
	if err := ownMounts(); err != nil {
		return err
	}
	for _, m := range []struct {
		from, path, kind string
		flags            uintptr
	}{
		{"sysfs", "/sys", "sysfs", unix.MS_RDONLY},
		{filepath.Join(dir, "run"), "/run", "", unix.MS_BIND},
		{filepath.Join(dir, "lib"), "/var/lib", "", unix.MS_BIND},
	} {
		if err := unix.Mount(m.from, m.path, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.from, m.path, err)
		}
	}
	return nil
}

// awaitName waits until a process has a name on a bus.
func awaitName(t testing.TB, b *MessageBus, name string, p *process) {
	t.Helper()
	c, err := dbus.Connect(b.Address)
	if err != nil {
		t.Fatalf("daemons: connect to %s: %v", b.Address, err)
	}
	defer func() { _ = c.Close() }() // the bus may be gone
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		select {
		case <-p.ended:
			t.Fatalf("daemons: %s ended before it was ready", p.cmd.Path)
		default:
		}
		var pid uint32
		if c.BusObject().Call("org.freedesktop.DBus.GetConnectionUnixProcessID", 0, name).Store(&pid) == nil && int(pid) == p.cmd.Process.Pid {
			return
		}
	}
	t.Fatalf("daemons: %s has no name on the bus", p.cmd.Path)
}

// device is the object of a network interface, which a new NetworkManager may not have yet.
func (n *NetworkService) device(c *dbus.Conn, name string) (dbus.BusObject, error) {
	var path dbus.ObjectPath
	err := c.Object(networkManager, "/org/freedesktop/NetworkManager").Call(networkManager+".GetDeviceByIpIface", 0, name).Store(&path)
	return c.Object(networkManager, path), err
}

// on calls f with the object of a network interface until it succeeds.
func (n *NetworkService) on(name, what string, f func(c *dbus.Conn, d dbus.BusObject) error) {
	n.t.Helper()
	c := DialBus(n.t, n.bus)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		d, err := n.device(c, name)
		if err == nil {
			err = f(c, d)
		}
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("daemons: NetworkManager: %s %s: %v", what, name, err)
		}
	}
}

// Reapply changes the connection that is active on an interface, as "nmcli device modify" does:
// it stays up.
func (n *NetworkService) Reapply(name string, change func(settings map[string]map[string]dbus.Variant)) {
	n.t.Helper()
	n.on(name, "reapply on", func(_ *dbus.Conn, d dbus.BusObject) error {
		var settings map[string]map[string]dbus.Variant
		var version uint64
		if err := d.Call(networkManager+".Device.GetAppliedConnection", 0, uint32(0)).Store(&settings, &version); err != nil {
			return err
		}
		for _, family := range []string{"ipv4", "ipv6"} { // the old forms of address-data and route-data
			delete(settings[family], "addresses")
			delete(settings[family], "routes")
		}
		change(settings)
		return d.Call(networkManager+".Device.Reapply", 0, settings, version, uint32(0)).Err
	})
}

// Disconnect deactivates what is active on an interface.
func (n *NetworkService) Disconnect(name string) {
	n.t.Helper()
	n.on(name, "disconnect", func(_ *dbus.Conn, d dbus.BusObject) error { return d.Call(networkManager+".Device.Disconnect", 0).Err })
}

// Activate activates the connection that suits an interface.
func (n *NetworkService) Activate(name string) {
	n.t.Helper()
	n.on(name, "activate", func(c *dbus.Conn, d dbus.BusObject) error {
		return c.Object(networkManager, "/org/freedesktop/NetworkManager").Call(networkManager+".ActivateConnection", 0,
			dbus.ObjectPath("/"), d.Path(), dbus.ObjectPath("/")).Err
	})
}
