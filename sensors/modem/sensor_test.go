package modem

import (
	"testing"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
	"mihf.dev/sensors/sensorstest"
)

func TestContract(t *testing.T) {
	sensorstest.Contract(t, func(testing.TB) sensors.Sensor {
		return newManager(registered(modem0, imei)).sensor(nil)
	}, func(o *mihf.Observation) bool { return o.Kind == mihf.ObsRadio })
}

// Registration, the bearer, and their end. The modem is a link of its own; a link is attached
// with a bearer only.
func TestConnects(t *testing.T) {
	inBubble(t, newManager(registered(modem0, imei)), nil, func(b *bed) {
		b.want("starting", "own associated", "ok", "own associated "+string(cellA))
		b.set(modem0, modemInterface, "Bearers", []dbus.ObjectPath{bearer0})
		b.bearer(false, "")
		b.state(modem0, 10, 1)
		b.settle()
		b.want()
		b.state(modem0, stateConnected, 1)
		b.settle()
		b.want() // no bearer is connected yet
		b.bearer(true, "ttyUSB0")
		b.settle()
		b.want("own authorised " + string(cellA))
		b.Log("# by the user")
		b.state(modem0, 9, 1)
		b.want("own disconnected "+string(cellA)+" explicit_disconnect/1", "own associated "+string(cellA))
		b.bearer(false, "")
		b.state(modem0, stateRegistered, 1)
		b.settle()
		b.want()
	})
}
