package modem

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

var errUnsupported = dbus.Error{Name: service + ".Error.Core.Unsupported", Body: []any{"Cannot setup thresholds: operation not supported"}}

// lte is the Lte dictionary.
func lte(rsrp, rsrq float64) dict {
	return dict{"rsrp": dbus.MakeVariant(rsrp), "rsrq": dbus.MakeVariant(rsrq)}
}

// pair is what SignalQuality is.
type pair struct {
	Percent uint32
	Recent  bool
}

// M05: "Signal.Setup is (re)applied on every new modem and owner change, and when Rate drops to
// 0 while we need data; rate never lowered for others."
func TestM05PollingIsAskedFor(t *testing.T) {
	inBubble(t, newManager(registered(modem0, imei)), nil, func(b *bed) {
		rate := func(path dbus.ObjectPath, want uint32) {
			t.Helper()
			b.settle()
			b.mu.Lock()
			defer b.mu.Unlock()
			if got := b.objects[path][signalInterface]["Rate"].Value(); got != want {
				t.Errorf("the rate is %v, want %d", got, want)
			}
		}
		rate(modem0, 5)
		time.Sleep(setupEvery)
		b.set(modem0, signalInterface, "Rate", uint32(0))
		rate(modem0, 5)
		b.set(modem0, signalInterface, "Rate", uint32(0)) // not twice within setupEvery
		rate(modem0, 0)
		time.Sleep(setupEvery)
		rate(modem0, 5)
		time.Sleep(setupEvery)
		b.set(modem0, signalInterface, "Rate", uint32(1))
		rate(modem0, 1)
		b.Log("# a new object")
		b.remove(modem0)
		b.add(registered(modem1, imei))
		rate(modem1, 5)
		b.Log("# a new ModemManager")
		b.own("")
		b.change(func() { b.objects[modem1][signalInterface]["Rate"] = dbus.MakeVariant(uint32(0)) })
		b.own(":1.9")
		rate(modem1, 5)
		b.rec.Stop(t)
		b.mu.Lock()
		defer b.mu.Unlock()
		if got := b.objects[modem1][signalInterface]["Rate"].Value(); got != uint32(0) {
			t.Errorf("the rate stays %v when the sensor has ended", got)
		}
	})
}

// What others have set is neither made slower nor taken back.
func TestPollingOfOthersStays(t *testing.T) {
	m := registered(modem0, imei).set(signalInterface, "Rate", uint32(2))
	inBubble(t, newManager(m), nil, func(b *bed) {
		time.Sleep(time.Minute)
		b.rec.Stop(t)
		if n := b.count("Setup"); n != 0 {
			t.Errorf("Setup was called %d times", n)
		}
	})
}

// M10: "nothing asked below state `enabled`; default Signal rate >= 5 s; per-modem `poll: off`."
func TestM10Sparing(t *testing.T) {
	if defaultPoll < 5*time.Second {
		t.Error("the default is faster than modems stand")
	}
	quiet := func(b *bed) {
		b.Helper()
		time.Sleep(10 * time.Minute)
		for _, member := range []string{"Setup", "SetupThresholds"} {
			if n := b.count(member); n != 0 {
				b.Errorf("%s was called %d times", member, n)
			}
		}
	}
	for _, state := range []int32{0, 1, 2, 3, 4, 5} {
		inBubble(t, newManager(registered(modem0, imei).set(modemInterface, "State", state)), func(o *Options) { o.ThresholdDB = 3 }, quiet)
	}
	for _, name := range []string{imei, "d" + imei, "/sys/" + imei} {
		inBubble(t, newManager(registered(modem0, imei)), func(o *Options) { o.ThresholdDB, o.NeverPoll = 3, []string{name} }, quiet)
	}
	inBubble(t, newManager(registered(modem0, imei)), func(o *Options) { o.Poll = -1 }, quiet)
}

// "Signals are asked for by thresholds, where the modem takes them and nobody has set any."
func TestThresholds(t *testing.T) {
	inBubble(t, newManager(registered(modem0, imei)), func(o *Options) { o.ThresholdDB, o.NoCells = 3, true }, func(b *bed) {
		b.want("starting", "own associated", "ok")
		if n, polls := b.count("SetupThresholds"), b.count("Setup"); n != 1 || polls != 0 {
			t.Errorf("%d thresholds, %d pollings", n, polls)
		}
		b.set(modem0, signalInterface, "Lte", lte(-95, -10))
		b.wantSamples(time.Second, "rsrp_dbm=-95 rsrq_db=-10")
		b.wantSamples(time.Minute) // nothing is repeated that nobody measured again
		b.Log("# another program takes them back")
		b.set(modem0, signalInterface, "RssiThreshold", uint32(0))
		time.Sleep(setupEvery)
		b.settle()
		if n := b.count("SetupThresholds"); n != 2 {
			t.Errorf("%d thresholds", n)
		}
		b.rec.Stop(t)
		if got := b.objects[modem0][signalInterface]["RssiThreshold"].Value(); got != uint32(0) {
			t.Errorf("the threshold stays %v", got)
		}
	})
	set := registered(modem0, imei).set(signalInterface, "RssiThreshold", uint32(6))
	inBubble(t, newManager(set), func(o *Options) { o.ThresholdDB = 3 }, func(b *bed) {
		b.rec.Stop(t)
		if n := b.count("SetupThresholds") + b.count("Setup"); n != 0 {
			t.Errorf("another's threshold was changed: %d calls", n)
		}
	})
}

// A modem that refuses thresholds is asked once, and polled.
func TestThresholdsRefused(t *testing.T) {
	for _, err := range []dbus.Error{errUnsupported, {Name: "org.freedesktop.DBus.Error.AccessDenied"}, {Name: "org.freedesktop.DBus.Error.UnknownMethod"}} {
		thresholdsRefused(t, err)
	}
}

func thresholdsRefused(t *testing.T, err error) {
	t.Helper()
	mm := newManager(registered(modem0, imei))
	mm.fail["SetupThresholds"] = err
	inBubble(t, mm, func(o *Options) { o.ThresholdDB = 3 }, func(b *bed) {
		time.Sleep(10 * time.Minute)
		if n, polls := b.count("SetupThresholds"), b.count("Setup"); n != 1 || polls != 1 {
			t.Errorf("%d thresholds, %d pollings", n, polls)
		}
		b.want("starting", "own associated", "ok", "own associated "+string(cellA))
		if n := b.counter("mihf_modem_refused_calls_total"); n != 1 {
			t.Errorf("%d refused calls", n)
		}
	})
}

// Refused polling is said; a permission that is missing, with which.
func TestPollingRefused(t *testing.T) {
	for _, c := range []struct {
		name, want string
	}{
		{service + ".Error.Core.Unsupported", "it gives no signal readings: only the percentage is known"},
		{service + ".Error.Core.Unauthorized", "we may not ask for signal readings (polkit, org.freedesktop.ModemManager1.Device.Control): only the percentage is known"},
		{"org.freedesktop.DBus.Error.AccessDenied", "we may not ask for signal readings (polkit, org.freedesktop.ModemManager1.Device.Control): only the percentage is known"},
	} {
		mm := newManager(registered(modem0, imei))
		mm.fail["Setup"] = dbus.Error{Name: c.name}
		inBubble(t, mm, func(o *Options) { o.NoCells = true }, func(b *bed) {
			time.Sleep(10 * time.Minute)
			b.want("starting", "own associated", "ok", "degraded modem 0 (LTE-1): "+c.want)
			if n := b.count("Setup"); n != 1 {
				t.Errorf("%s: %d calls", c.name, n)
			}
		})
	}
	mm := newManager(registered(modem0, imei))
	mm.fail["Setup"] = dbus.Error{Name: service + ".Error.Core.InProgress"}
	inBubble(t, mm, nil, func(b *bed) {
		time.Sleep(time.Minute)
		if n := b.count("Setup"); n < 3 || n > 5 { // 0, 10, 30 s
			t.Errorf("%d calls within a minute", n)
		}
	})
}

// While ModemManager polls, a reading that stands is published again; without, only what changes.
func TestSamples(t *testing.T) {
	inBubble(t, newManager(registered(modem0, imei)), func(o *Options) { o.NoCells = true }, func(b *bed) {
		b.wantSamplesAfterStart("rsrp_dbm=-90 rsrq_db=-9 quality_percent=60")
		b.wantSamples(11*time.Second, "rsrp_dbm=-90 rsrq_db=-9", "rsrp_dbm=-90 rsrq_db=-9")
		b.set(modem0, signalInterface, "Lte", lte(-101, -12))
		b.wantSamples(time.Second, "rsrp_dbm=-101 rsrq_db=-12")
		b.state(modem0, 7, 0)
		b.settle()
		b.all(true)
		b.wantSamples(time.Minute) // without a network there is no signal of one
	})
}

// wantSamplesAfterStart compares the samples of what was emitted until now.
func (b *bed) wantSamplesAfterStart(want string) {
	b.Helper()
	got := b.all(true)
	if slices.Contains(got, "own radio "+want) {
		return
	}
	b.Errorf("no sample %s in %q", want, got)
}

// M09: "recent=false: shown with age, not fed to the predictor, confidence 0; recent=true resets
// the age." What is not recent is published no more, so the one before stands with its time.
func TestM09NotRecent(t *testing.T) {
	m := registered(modem0, imei).set(modemInterface, "SignalQuality", pair{72, false}).set(signalInterface, "Lte", dict{})
	inBubble(t, newManager(m), func(o *Options) { o.NoCells, o.Poll = true, -1 }, func(b *bed) {
		b.all(false)
		b.wantSamples(10 * time.Minute)
		b.set(modem0, modemInterface, "SignalQuality", pair{72, true})
		b.wantSamples(time.Second, "quality_percent=72")
		b.set(modem0, modemInterface, "SignalQuality", pair{72, false})
		b.wantSamples(10 * time.Minute)
		b.set(modem0, modemInterface, "SignalQuality", pair{72, true})
		b.wantSamples(time.Second, "quality_percent=72")
		b.set(modem0, modemInterface, "SignalQuality", pair{255, true}) // not known
		b.wantSamples(time.Second)
	})
}

// M07: "Metrics per RAT all optional; an unsupported optional call is tried once per modem and
// never blanks the others; NSA (LTE+NR) shows both."
func TestM07Technologies(t *testing.T) {
	v := dbus.MakeVariant
	for _, c := range []struct {
		name   string
		access uint32
		of     map[string]any
		want   string
	}{
		{"UMTS, with a dictionary of LTE that is left over", 1 << 5, map[string]any{"Umts": dict{"rscp": v(-99.0), "ecio": v(-7.5), "rssi": v(-80.0)}}, "rscp_dbm=-99 ecio_db=-7.5"},
		{"GSM", 1 << 3, map[string]any{"Gsm": dict{"rssi": v(-88.0)}}, "carrier_rssi_dbm=-88"},
		{"LTE and NR", 1<<14 | 1<<15, map[string]any{"Nr5g": dict{"rsrp": v(-101.0), "snr": v(12.0)}}, "rsrp_dbm=-90 rsrq_db=-9 nr_rsrp_dbm=-101 nr_sinr_db=12"},
		{"NR alone", 1 << 15, map[string]any{"Lte": dict{}, "Nr5g": dict{"rsrp": v(-101.0)}}, "nr_rsrp_dbm=-101"},
		{"not known", 0, map[string]any{"Gsm": dict{"rssi": v(-88.0)}}, "rsrp_dbm=-90 rsrq_db=-9 carrier_rssi_dbm=-88"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := registered(modem0, imei).set(modemInterface, "AccessTechnologies", c.access).set(modemInterface, "SignalQuality", pair{0, false})
			for name, d := range c.of {
				m.set(signalInterface, name, d)
			}
			mm := newManager(m)
			mm.fail["GetLocation"] = errUnsupported
			inBubble(t, mm, nil, func(b *bed) {
				b.wantSamplesAfterStart(c.want)
				b.set(modem0, gppInterface, "RegistrationState", uint32(5)) // a reason to ask for the cell again
				time.Sleep(10 * time.Minute)
				if n := b.count("GetLocation"); n != 1 {
					t.Errorf("the refused call was made %d times", n)
				}
				b.wantSamplesAfterStart(c.want)
			})
		})
	}
}

// The cell is learned from ModemManager's word to all as well, and where it is not gathered it
// is not asked for.
func TestCells(t *testing.T) {
	told := registered(modem0, imei).set(locationInterface, "Location", map[uint32]dbus.Variant{1: dbus.MakeVariant("262,01,1,1C3D4E6,0")})
	inBubble(t, newManager(told), nil, func(b *bed) {
		b.want("starting", "own associated "+string(cellB), "ok")
		if n := b.count("GetLocation"); n != 0 {
			t.Errorf("GetLocation was called %d times", n)
		}
	})
	off := registered(modem0, imei).set(locationInterface, "Enabled", uint32(0))
	inBubble(t, newManager(off), nil, func(b *bed) {
		time.Sleep(time.Minute)
		b.want("starting", "own associated", "ok")
		if n := b.count("GetLocation"); n != 0 {
			t.Errorf("GetLocation was called %d times", n)
		}
	})
	inBubble(t, newManager(registered(modem0, imei)), nil, func(b *bed) {
		b.want("starting", "own associated", "ok", "own associated "+string(cellA))
		b.change(func() { b.fail["GetLocation"] = errors.New("this time") })
		time.Sleep(time.Minute)
		b.change(func() {
			clear(b.fail)
			b.cells[modem0] = "262,01,1A2B,1C3D4E6,0"
		})
		time.Sleep(cellEvery)
		b.want("own associated " + string(cellB))
	})
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		err  error
		want verdict
	}{
		{nil, verdictFailed},
		{errUnknownObject, verdictGone},
		{errUnsupported, verdictRefused},
		{dbus.Error{Name: "org.example.Else"}, verdictFailed},
		{errors.New("context deadline exceeded"), verdictSilent},
	} {
		if got := verdictOf(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}
