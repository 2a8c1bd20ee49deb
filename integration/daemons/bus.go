package daemons

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

// A BusConfig says what a private bus permits. The zero value permits everybody everything.
type BusConfig struct {
	// System gives the bus the policy of a system bus: nobody may own a name or call a
	// service but where Policies allow it.
	System bool
	// Policies are the texts of policy files, as packages install them in
	// dbus-1/system.d.
	Policies []string
	// Users are whom the bus knows beside the users of this host: only those can connect,
	// and only their names (or numbers) and groups mean something in Policies. The test is
	// skipped where it may not make them known, which needs root.
	Users []User
	// Limits by name, such as "max_replies_per_connection"; what is not here has
	// dbus-daemon's default.
	Limits map[string]int
}

// A MessageBus is a private dbus-daemon.
type MessageBus struct {
	Daemon
	Address string // the same over restarts
	dir     string
	users   []User
}

// Bus starts a private message bus that ends with the test.
func Bus(t testing.TB, c BusConfig) *MessageBus {
	t.Helper()
	dir := shortDir(t)
	b := &MessageBus{Address: "unix:path=" + filepath.Join(dir, "bus"), dir: dir, users: c.Users}
	b.Daemon = Daemon{t: t, command: func() *exec.Cmd {
		return Command(t, "dbus-daemon", "--config-file="+filepath.Join(dir, "bus.conf"), "--nofork", "--nopidfile", "--print-address=1")
	}, ready: func(p *process) {
		t.Helper()
		p.await(t, regexp.MustCompile(regexp.QuoteMeta(b.Address)))
	}}
	b.configure(c)
	if len(b.users) > 0 {
		b.knowUsers()
	}
	b.start()
	return b
}

func (b *MessageBus) configure(c BusConfig) {
	b.t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, busHead, b.Address)
	if c.System {
		text.WriteString(systemPolicy)
	} else {
		text.WriteString(openPolicy)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Limits)) {
		fmt.Fprintf(&text, "  <limit name=%q>%d</limit>\n", name, c.Limits[name])
	}
	for i, policy := range c.Policies {
		name := fmt.Sprintf("policy-%d.conf", i)
		b.write(name, policy)
		fmt.Fprintf(&text, "  <include>%s</include>\n", name)
	}
	text.WriteString("</busconfig>\n")
	b.write("bus.conf", text.String())
}

// knowUsers has dbus-daemon run in a mount namespace whose user database has the bus's
// users: it refuses whom it cannot look up.
func (b *MessageBus) knowUsers() {
	b.t.Helper()
	if os.Geteuid() != 0 {
		b.t.Skip(errNotRoot)
	}
	passwd, group, err := userFiles(b.users)
	if err != nil {
		b.t.Fatal(err)
	}
	b.write("passwd", passwd)
	b.write("group", group)
	b.enter = func() error {
		if err := ownMounts(); err != nil {
			return err
		}
		for _, name := range []string{"passwd", "group"} {
			if err := unix.Mount(filepath.Join(b.dir, name), "/etc/"+name, "", unix.MS_BIND, ""); err != nil {
				return fmt.Errorf("mount %s: %w", name, err)
			}
		}
		return nil
	}
}

func (b *MessageBus) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal("daemons:", err)
	}
}

const busHead = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>custom</type>
  <auth>EXTERNAL</auth>
  <listen>%s</listen>
`

const openPolicy = `  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
  </policy>
`

// systemPolicy has the rules that a distribution's system bus starts from.
const systemPolicy = `  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Introspectable"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Properties"/>
    <deny send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus" send_member="UpdateActivationEnvironment"/>
  </policy>
  <policy user="0">
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Monitoring"/>
  </policy>
`

// DialBus connects to the bus as the test's own user. The connection ends with the test.
func DialBus(t testing.TB, b *MessageBus, options ...dbus.ConnOption) *dbus.Conn {
	t.Helper()
	c, err := dbus.Connect(b.Address, options...)
	if err != nil {
		t.Fatalf("daemons: connect to %s: %v", b.Address, err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the bus may be gone
	return c
}

// DialBusAs connects to the bus as another user: one of the bus's Users or of this host.
// It skips the test where that needs rights that the test hasn't got.
func DialBusAs(t testing.TB, b *MessageBus, uid uint32, options ...dbus.ConnOption) *dbus.Conn {
	t.Helper()
	u := User{UID: uid, GID: uid}
	if i := slices.IndexFunc(b.users, func(u User) bool { return u.UID == uid }); i >= 0 {
		u = b.users[i]
	}
	var c *dbus.Conn
	err := As(t, u, func() error {
		var err error
		c, err = dbus.Dial(b.Address, options...)
		return err
	})
	if err != nil {
		t.Fatalf("daemons: connect to %s as %d: %v", b.Address, uid, err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the bus may be gone
	if err := c.Auth([]dbus.Auth{dbus.AuthExternal(strconv.FormatUint(uint64(uid), 10))}); err != nil {
		t.Fatalf("daemons: authenticate as %d: %v", uid, err)
	}
	if err := c.Hello(); err != nil {
		t.Fatalf("daemons: hello as %d; does the bus know that user? %v", uid, err)
	}
	return c
}
