package modem

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"go.uber.org/goleak"

	"mihf.dev/integration/daemons"
	"mihf.dev/integration/modem/atmodem"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/sensors/modem"
	"mihf.dev/sensors/sensorstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const manager = "org.freedesktop.ModemManager1"

// bed is a ModemManager on a bus of its own with the sensor, and modems.
type bed struct {
	*testing.T
	bus     *daemons.MessageBus
	service *daemons.ModemService
	sensor  *modem.Sensor
	*sensorstest.Recorder
	profiles [][]string // of the modems, by which a new ModemManager gets them
}

// newBed starts the bus, ModemManager and the sensor.
func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{T: t, bus: daemons.Bus(t, daemons.BusConfig{})}
	b.service = daemons.ModemManager(t, b.bus)
	b.sense()
	return b
}

// sense starts the sensor.
func (b *bed) sense() {
	b.sensor = modem.New(modem.Options{
		Clock: clock.Process(), Address: func() (string, error) { return b.bus.Address, nil }, Poll: time.Second, ThresholdDB: 3,
	})
	b.Recorder = sensorstest.Start(b, b.sensor)
}

// plug makes a modem with so many ports and gives it to ModemManager.
func (b *bed) plug(ports int, cfg atmodem.Config) *atmodem.Modem {
	b.Helper()
	dir, err := os.MkdirTemp("", "at") // short enough for a socket's path
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	m := atmodem.New(cfg)
	profile := []string{fmt.Sprintf("modem%d", len(b.profiles))}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	for n := range ports {
		path := filepath.Join(dir, fmt.Sprint(n))
		l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
		if err != nil {
			b.Fatal(err)
		}
		profile = append(profile, path)
		go func() { ended <- m.Serve(ctx, l) }()
	}
	b.Cleanup(func() {
		cancel()
		for range ports {
			if err := <-ended; err != nil {
				b.Error(err)
			}
		}
	})
	b.profiles = append(b.profiles, profile)
	b.service.Profile(profile[0], profile[1:]...)
	return m
}

// wait waits for an observation, by its text (see show), and returns it.
func (b *bed) wait(want string) mihf.Observation {
	b.Helper()
	return b.Wait(b, want, func(o *mihf.Observation) bool { return show(o) == want })
}

// waitFor waits for an observation whose text begins so.
func (b *bed) waitFor(prefix string) mihf.Observation {
	b.Helper()
	return b.Wait(b, prefix+"…", func(o *mihf.Observation) bool { return strings.HasPrefix(show(o), prefix) })
}

// sample waits for a reading with these values, whatever else it has.
func (b *bed) sample(want map[mihf.Parameter]float64) {
	b.Helper()
	b.Wait(b, fmt.Sprint("a reading with ", want), func(o *mihf.Observation) bool {
		for p, v := range want {
			if got, ok := o.Values.Get(p); !ok || got != v {
				return false
			}
		}
		return o.Kind == mihf.ObsRadio
	})
}

func show(o *mihf.Observation) string {
	switch o.Kind {
	case mihf.ObsAssociation:
		a := o.Association
		s := strings.TrimSpace(fmt.Sprintf("%v %s", a.State, a.PoA))
		if a.State <= mihf.AssociationDisconnected {
			s += " " + a.Cause.String()
		}
		return s
	case mihf.ObsCondition:
		return strings.TrimSpace(fmt.Sprintf("%v %s", o.Condition.Condition, o.Condition.Text))
	case mihf.ObsLinkGone:
		return "gone " + o.Gone.String()
	case mihf.ObsResync:
		return fmt.Sprintf("resync lost=%v", o.Lost)
	default:
		return o.Kind.String()
	}
}

// modems returns the paths of ModemManager's modems with their properties.
func (b *bed) modems() map[dbus.ObjectPath]map[string]map[string]dbus.Variant {
	b.Helper()
	c := daemons.DialBus(b, b.bus)
	defer c.Close()
	var all map[dbus.ObjectPath]map[string]map[string]dbus.Variant
	if err := c.Object(manager, "/org/freedesktop/ModemManager1").Call("org.freedesktop.DBus.ObjectManager.GetManagedObjects", 0).Store(&all); err != nil {
		b.Fatal(err)
	}
	return all
}

// call calls a method of the only modem, as a user's program would.
func (b *bed) call(method string, args ...any) ([]any, error) {
	b.Helper()
	for path := range b.modems() {
		return b.service.Call(path, method, args...)
	}
	b.Fatal("there is no modem")
	return nil, nil
}

// enable enables the only modem, once it is there.
func (b *bed) enable() {
	b.Helper()
	for deadline := time.Now().Add(sensorstest.Patience); len(b.modems()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatal("ModemManager shows no modem")
		}
	}
	if _, err := b.call("Modem.Enable", true); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) counter(name string) uint64 {
	b.Helper()
	for _, c := range b.sensor.Counters() {
		if c.Name == name {
			return c.Value
		}
	}
	b.Fatalf("no counter %s", name)
	return 0
}
