package modem

import (
	"math"
	"slices"
	"testing"

	"github.com/godbus/dbus/v5"

	"mihf.dev/integration/daemons"
	"mihf.dev/integration/modem/mock"
	"mihf.dev/mihf"
)

const imei = "490154203237518"

// path returns the path of a mocked modem.
func path(n string) dbus.ObjectPath { return mock.Root + "/Modem/" + dbus.ObjectPath(n) }

// newMock is a bed with a mocked ModemManager.
func newMock(t *testing.T) (*bed, *mock.Manager) {
	t.Helper()
	b := &bed{T: t, bus: daemons.Bus(t, daemons.BusConfig{})}
	m, err := mock.Start(daemons.DialBus(t, b.bus))
	if err != nil {
		t.Fatal(err)
	}
	b.sense()
	return b, m
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// SetupThresholds' success. This is a mock: Debian's ModemManager without hardware refuses it.
func TestThresholdsOfAMock(t *testing.T) {
	b, m := newMock(t)
	b.must(m.Add(path("2"), mock.Phone(imei)))
	b.wait("associated 26201-1c3d4e5")
	b.must(m.Set(path("2"), mock.Signal, "Lte", mock.Numbers("rsrp", -100, "snr", 3)))
	b.sample(map[mihf.Parameter]float64{mihf.ParamRSRP: -100, mihf.ParamSINR: 3})
	if v := m.Property(path("2"), mock.Signal, "RssiThreshold"); v != uint32(3) {
		t.Errorf("the threshold is %v", v)
	}
	b.Stop(t)
	if calls := m.Calls(); slices.Contains(calls, "Setup") || m.Property(path("2"), mock.Signal, "RssiThreshold") != uint32(0) {
		t.Errorf("calls %v; the threshold is %v at the end", calls, m.Property(path("2"), mock.Signal, "RssiThreshold"))
	}
}

// M06, M07: what is unknown is absent, and LTE and NR are both told, over a real bus.
func TestM06M07ReadingsOfAMock(t *testing.T) {
	b, m := newMock(t)
	o := mock.Phone(imei)
	o[mock.Modem]["AccessTechnologies"] = uint32(1<<14 | 1<<15)
	o[mock.Signal]["Lte"] = mock.Numbers("rsrp", -101, "rsrq", -math.MaxFloat64, "snr", math.NaN())
	o[mock.Signal]["Nr5g"] = mock.Numbers("rsrp", -95, "snr", math.Inf(1), "rsrq", 255)
	b.must(m.Add(path("7"), o))
	seen := b.Wait(t, "a reading", func(o *mihf.Observation) bool { return o.Values.Has(mihf.ParamRSRP) })
	want := map[mihf.Parameter]float64{mihf.ParamRSRP: -101, mihf.ParamNRRSRP: -95, mihf.ParamQuality: 60}
	seen.Values.All(func(p mihf.Parameter, v float64) bool {
		if w, ok := want[p]; !ok || w != v {
			t.Errorf("%v is %v", p, v)
		}
		delete(want, p)
		return true
	})
	if len(want) > 0 {
		t.Errorf("%v are missing", want)
	}
	if n := b.counter("mihf_modem_rejected_values_total"); n == 0 {
		t.Error("an RSRQ of 255 dB was not counted")
	}
}

// M02: a modem that was reset is another object of the same link.
func TestM02ResetOfAMock(t *testing.T) {
	b, m := newMock(t)
	b.must(m.Add(path("0"), mock.Phone(imei)))
	link := b.wait("associated 26201-1c3d4e5").Link
	b.must(m.Remove(path("0")))
	if o := b.wait("gone removed"); o.Link != link {
		t.Errorf("link %s is gone, want %s", o.Link, link)
	}
	b.must(m.Add(path("31"), mock.Phone(imei)))
	if o := b.wait("associated 26201-1c3d4e5"); o.Link != link {
		t.Errorf("the modem is link %s now, was %s", o.Link, link)
	}
}
