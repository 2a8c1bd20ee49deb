package daemons

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	somebody = 61234
	other    = 61235
)

// call calls a method of the bus itself.
func call(t *testing.T, c *dbus.Conn, timeout time.Duration, method string, into any, args ...any) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	return c.BusObject().CallWithContext(ctx, "org.freedesktop.DBus."+method, 0, args...).Store(into)
}

func own(t *testing.T, c *dbus.Conn, name string) error {
	t.Helper()
	var reply uint32
	return call(t, c, patience, "RequestName", &reply, name, uint32(dbus.NameFlagDoNotQueue))
}

func TestBusKnowsItsUsers(t *testing.T) {
	b := Bus(t, BusConfig{Users: []User{{UID: somebody, GID: somebody}, {UID: other, GID: other}}})
	mine := DialBus(t, b)
	for _, uid := range []uint32{somebody, other} {
		c := DialBusAs(t, b, uid)
		var got uint32
		if err := call(t, mine, patience, "GetConnectionUnixUser", &got, c.Names()[0]); err != nil || got != uid {
			t.Errorf("user %d, %v; want %d", got, err, uid)
		}
		if err := own(t, c, "dev.mihf.Test"+string('A'+rune(uid-somebody))); err != nil {
			t.Errorf("on an open bus everybody may own a name: %v", err)
		}
	}
}

// TestBusPolicy: on a system bus a name belongs to whom a policy gives it, by user and by
// group.
func TestBusPolicy(t *testing.T) {
	const policy = `<busconfig>
  <policy user="somebody"><allow own="dev.mihf.Test"/></policy>
  <policy group="club"><allow own="dev.mihf.Group"/></policy>
</busconfig>`
	b := Bus(t, BusConfig{System: true, Policies: []string{policy}, Users: []User{
		{Name: "somebody", UID: somebody, GID: somebody},
		{Name: "club", UID: 61999, GID: 61999},
		{Name: "other", UID: other, GID: other, Groups: []uint32{61999}},
	}})
	denied := func(err error) bool {
		e, ok := errors.AsType[dbus.Error](err)
		return ok && strings.HasSuffix(e.Name, ".AccessDenied")
	}
	one, two := DialBusAs(t, b, somebody), DialBusAs(t, b, other)
	if err := own(t, one, "dev.mihf.Test"); err != nil {
		t.Errorf("the owner that the policy names: %v", err)
	}
	if err := own(t, two, "dev.mihf.Test2"); !denied(err) {
		t.Errorf("a name without a policy: %v", err)
	}
	if err := own(t, two, "dev.mihf.Group"); err != nil {
		t.Errorf("a member of the group that the policy names: %v", err)
	}
	if err := own(t, one, "dev.mihf.Group"); !denied(err) {
		t.Errorf("not a member: %v", err)
	}
}

func TestBusLimits(t *testing.T) {
	b := Bus(t, BusConfig{Limits: map[string]int{"max_connections_per_user": 1, "max_match_rules_per_connection": 7}, Users: []User{{UID: somebody, GID: somebody}}})
	DialBusAs(t, b, somebody)
	err := As(t, User{UID: somebody, GID: somebody}, func() error {
		c, err := dbus.Dial(b.Address)
		if err != nil {
			return err
		}
		defer c.Close()
		return errors.Join(c.Auth([]dbus.Auth{dbus.AuthExternal("61234")}), c.Hello())
	})
	if err == nil {
		t.Error("a second connection of the same user")
	}
}

func TestBusKilledAndRestarted(t *testing.T) {
	b := Bus(t, BusConfig{})
	c := DialBus(t, b)
	first := b.Pid()
	b.Kill()
	<-c.Context().Done()
	if _, err := dbus.Dial(b.Address); err == nil {
		t.Error("connected to a killed bus")
	}
	b.Restart()
	if b.Pid() == first {
		t.Error("the same process after a restart")
	}
	if err := own(t, DialBus(t, b), "dev.mihf.Test"); err != nil {
		t.Error(err)
	}
	b.Terminate()
	if _, err := dbus.Dial(b.Address); err == nil {
		t.Error("connected to a bus that has ended")
	}
}

func TestBusStopped(t *testing.T) {
	b := Bus(t, BusConfig{})
	c := DialBus(t, b)
	b.Stop()
	var id string
	if err := call(t, c, 20*time.Millisecond, "GetId", &id); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a halted bus answers: %q, %v", id, err)
	}
	b.Cont()
	if err := call(t, c, patience, "GetId", &id); err != nil {
		t.Errorf("after going on: %v", err)
	}
}

func TestBusctl(t *testing.T) {
	b := Bus(t, BusConfig{})
	if err := own(t, DialBus(t, b), "dev.mihf.Test"); err != nil {
		t.Fatal(err)
	}
	out, err := Command(t, "busctl", "--address="+b.Address, "--no-pager", "list").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "dev.mihf.Test ") {
		t.Errorf("busctl list: %v\n%s", err, out)
	}
}
