package front

import (
	"context"
	"net"
	"os"
	"testing"

	"mihf.dev/clients"
	"mihf.dev/clients/mihdbus"
	"mihf.dev/integration/daemons"
	"mihf.dev/mihf/front"
	"mihf.dev/mihf/front/dbusfront"
)

func TestDBus(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("unsupported: connecting as several users needs root")
	}
	Run(t, Front{Name: "dbus", Serve: serveDBus})
}

// busUsers are the users of the suite, as the bus knows them.
func busUsers() (users []daemons.User) {
	for uid := range granted {
		if uid != admin {
			users = append(users, daemons.User{UID: uid, GID: uid})
		}
	}
	return users
}

func serveDBus(t *testing.T, b front.Broker) func(*testing.T, uint32) clients.Client {
	t.Helper()
	bus := daemons.Bus(t, daemons.BusConfig{Users: busUsers()})
	s, err := dbusfront.New(dbusfront.Options{Broker: b, Address: func() (string, error) { return bus.Address, nil }})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, s.Run)
	<-s.Ready()
	return func(t *testing.T, uid uint32) clients.Client {
		t.Helper()
		c, err := mihdbus.Dial(bus.Address, mihdbus.Options{Dial: dialAs(t, uid)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

// dialAs connects to a unix socket as another user.
func dialAs(t *testing.T, uid uint32) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		var c net.Conn
		err := daemons.As(t, daemons.User{UID: uid, GID: uid}, func() (err error) {
			c, err = new(net.Dialer).DialContext(ctx, network, address)
			return err
		})
		return c, err
	}
}
