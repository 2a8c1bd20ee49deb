package modem

import (
	"strings"
	"testing"
	"time"

	"mihf.dev/integration/modem/atmodem"
	"mihf.dev/mihf"
)

// D01 and D04: the message bus is killed, and ModemManager with it; both come back.
func TestD01BusKilled(t *testing.T) {
	b := newBed(t)
	b.plug(2, atmodem.Config{})
	b.enable()
	link := b.wait("associated 26201-1c3d4e5").Link
	b.bus.Kill()
	b.wait("degraded the message bus was lost, so what is known of modems is what was said last")
	b.service.Kill()
	b.bus.Restart()
	b.service.Restart()
	b.service.Profile(b.profiles[0][0], b.profiles[0][1:]...)
	b.enable()
	if o := b.wait("associated 26201-1c3d4e5"); o.Link != link {
		t.Errorf("the modem is link %s now, was %s", o.Link, link)
	}
	if n := b.counter("mihf_modem_resyncs_total"); n != 1 {
		t.Errorf("%d complete readings after a loss, want 1", n)
	}
}

// D10: a bus that stands still changes nothing of what is known, and neither does a ModemManager
// that does.
func TestD10StandStill(t *testing.T) {
	b := newBed(t)
	b.plug(2, atmodem.Config{})
	b.enable()
	b.wait("associated 26201-1c3d4e5")
	for _, halted := range []interface {
		Stop()
		Cont()
	}{b.bus, b.service} {
		b.sample(map[mihf.Parameter]float64{mihf.ParamRSRP: -90})
		halted.Stop()
		seen := b.Until(t, "no answer", func(o *mihf.Observation) bool {
			return strings.HasPrefix(show(o), "degraded ModemManager does not answer, so what is known of it is what it said last")
		})
		halted.Cont()
		for _, o := range append(seen, b.Until(t, "answers", func(o *mihf.Observation) bool { return show(o) == "ok" })...) {
			if o.Kind == mihf.ObsAssociation || o.Kind == mihf.ObsLinkGone {
				t.Errorf("%s although nothing was known to change", show(&o))
			}
		}
	}
}

// M05: the polling that another program takes away is asked for again; M10: it is taken back when
// the sensor ends, and a modem that is not enabled is asked for nothing.
func TestM05Polling(t *testing.T) {
	b := newBed(t)
	m := b.plug(2, atmodem.Config{})
	for deadline := time.Now().Add(20 * time.Second); len(b.modems()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no modem")
		}
	}
	b.wait("ok") // it is known, and disabled
	for _, c := range m.Commands() {
		if strings.HasPrefix(c, "AT+CESQ") && c != "AT+CESQ=?" {
			t.Errorf("a disabled modem was asked: %s", c)
		}
	}
	if n := b.rate(); n != 0 {
		t.Errorf("a disabled modem is polled every %d s", n)
	}
	b.enable()
	b.sample(map[mihf.Parameter]float64{mihf.ParamRSRP: -90})
	if n := b.rate(); n != 1 {
		t.Errorf("it is polled every %d s, want 1", n)
	}
	b.Stop(t)
	if n := b.rate(); n != 0 {
		t.Errorf("it is polled every %d s after the sensor has ended", n)
	}
}

// rate returns the rate of the only modem's polling, in seconds.
func (b *bed) rate() uint32 {
	b.Helper()
	for _, of := range b.modems() {
		v, _ := of[manager+".Modem.Signal"]["Rate"].Value().(uint32)
		return v
	}
	b.Fatal("there is no modem")
	return 0
}
