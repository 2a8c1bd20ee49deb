package nl80211

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

func testPace() *pace {
	return &pace{cfg: &config{near: -65, pollFar: time.Second, pollNear: 100 * time.Millisecond}}
}

func rssi(v float64) *mihf.Values {
	var vs mihf.Values
	vs.Set(mihf.ParamRSSI, v)
	return &vs
}

func TestPace(t *testing.T) {
	p := testPace()
	now := mihf.Time(time.Hour)
	step := func(dbm float64, want time.Duration) {
		t.Helper()
		p.take(now, rssi(dbm))
		if got := p.interval(now); got != want {
			t.Errorf("%v dBm: %v, want %v", dbm, got, want)
		}
		now = now.Add(p.interval(now))
	}
	const far, near = time.Second, 100 * time.Millisecond
	step(-50, far)
	step(-51, far)
	step(-59, near) // in two readings more it would be at -75
	step(-59, near)
	for range 18 {
		step(-59, near)
	}
	step(-59, far)
	step(-66, near)
	step(-63, near) // not beyond the hysteresis
	for range 30 {
		step(-63, near)
	}
	for range 19 {
		step(-61, near)
	}
	step(-61, far)
	p.alarm(now) // the kernel warned
	for range 50 {
		step(-50, near)
	}
	step(-50, far)
	p.begin(now)
	for range 20 {
		step(-50, near)
	}
	step(-50, far)
	p.take(now, &mihf.Values{}) // no signal: nothing is known, so nothing to hurry for
	if got := p.interval(now); got != far {
		t.Errorf("without a signal: %v", got)
	}
}

// However a signal falls at 1 to 6 dB/s, with noise, it is read at the fast rate long
// before the level at which links break.
func TestPaceProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := testPace()
		slope := rapid.Float64Range(1, 6).Draw(rt, "dB/s")
		now, begin := mihf.Time(time.Hour), mihf.Time(time.Hour)
		for {
			v := -40 - slope*now.Sub(begin).Seconds() + rapid.Float64Range(-3, 3).Draw(rt, "noise")
			if v < -80 {
				return
			}
			p.take(now, rssi(v))
			if d := p.interval(now); v < -72 && d > 100*time.Millisecond {
				rt.Errorf("at %.1f dBm, falling %.1f dB/s: %v", v, slope, d)
			}
			now = now.Add(p.interval(now))
		}
	})
}

// "The signal is read every PollFar, and every PollNear while …": with the kernel's answers.
func TestPolling(t *testing.T) {
	inBubble(t, attached1("home", -50), nil, func(b *bed) {
		b.samples(settleFor)
		about := func(what string, d time.Duration, low, high int) {
			b.Helper()
			if n := len(b.samples(d)); n < low || n > high {
				b.Errorf("%s: %d samples in %v, want %d to %d", what, n, d, low, high)
			}
		}
		about("far", time.Minute, 58, 62)
		b.set(attached(ap1, -70))
		b.samples(time.Second)
		about("near", 10*time.Second, 98, 102)
		b.set(attached(ap1, -50))
		b.samples(nearFor)
		about("far again", 10*time.Second, 9, 11)
		b.kernel.beaconLoss()
		about("warned", 4*time.Second, 38, 42)
		b.Log("# a warning is looked into at once")
		time.Sleep(time.Minute)
		b.seen(true)
		b.kernel.beaconLoss()
		about("at once", 0, 1, 1)
		b.Log("# not attached: nothing is polled, and looked at now and then")
		b.set()
		b.kernel.disconnect(3, false)
		before := b.kernel.count(unix.NL80211_CMD_GET_STATION)
		about("not attached", time.Minute, 0, 0)
		if n := b.kernel.count(unix.NL80211_CMD_GET_STATION) - before; n < 10 || n > 14 {
			b.Errorf("looked %d times a minute", n)
		}
	})
}
