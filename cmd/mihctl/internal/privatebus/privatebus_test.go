package privatebus_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
	"go.uber.org/goleak"

	"mihf.dev/cmd/mihctl/internal/privatebus"
	"mihf.dev/integration/daemons"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// short is a folder whose path leaves room for a socket's name.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mihf-bus-") //nolint:usetesting // as above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// The bus takes connections at once, and is gone when it was closed or its context ended.
func TestBus(t *testing.T) {
	if err := daemons.InPath(t, "dbus-daemon"); err != nil {
		t.Skip(err)
	}
	for name, end := range map[string]func(*privatebus.Bus, context.CancelFunc) error{
		"closed":  func(b *privatebus.Bus, _ context.CancelFunc) error { return errors.Join(b.Close(), b.Close()) },
		"context": func(b *privatebus.Bus, cancel context.CancelFunc) error { cancel(); return b.Close() },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		b, err := privatebus.Start(ctx, short(t))
		if err != nil {
			t.Fatal(err)
		}
		c, err := dbus.Connect(b.Address)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := end(b, cancel); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		<-c.Context().Done()
		if c, err := dbus.Connect(b.Address); err == nil {
			_ = c.Close()
			t.Errorf("%s: the bus still takes connections", name)
		}
	}
}

// What hinders it is named, with what to do where there is something.
func TestRefusals(t *testing.T) {
	dir := short(t)
	t.Run("no program", func(t *testing.T) {
		t.Setenv("PATH", dir)
		if _, err := privatebus.Start(t.Context(), dir); !errors.Is(err, privatebus.ErrAbsent) {
			t.Error(err)
		}
	})
	t.Run("no folder", func(t *testing.T) {
		if err := daemons.InPath(t, "dbus-daemon"); err != nil {
			t.Skip(err)
		}
		if _, err := privatebus.Start(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("no room for a socket's name", func(t *testing.T) {
		if err := daemons.InPath(t, "dbus-daemon"); err != nil {
			t.Skip(err)
		}
		long := filepath.Join(dir, strings.Repeat("x", 120))
		if err := os.Mkdir(long, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := privatebus.Start(t.Context(), long); err == nil || !strings.Contains(err.Error(), "Socket name too long") {
			t.Error(err)
		}
	})
	t.Run("context", func(t *testing.T) {
		if err := daemons.InPath(t, "dbus-daemon"); err != nil {
			t.Skip(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		cancel(why)
		if _, err := privatebus.Start(ctx, dir); !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
