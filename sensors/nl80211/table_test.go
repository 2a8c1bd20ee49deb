package nl80211

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

func TestDetections(t *testing.T) {
	inBubble(t, station0(), nil, func(b *bed) {
		b.seen(true)
		scan := func(list ...rawBSS) {
			time.Sleep(lateWord + time.Second)
			b.send(unix.NL80211_CMD_TRIGGER_SCAN)
			b.seen(true)
			for i := range list {
				if list[i].seen == 0 {
					list[i].seen = b.now()
				}
			}
			b.kernel.change(func() { b.wlan.bss = list })
			b.send(unix.NL80211_CMD_NEW_SCAN_RESULTS)
		}
		one := func(dbm int32) rawBSS { return rawBSS{bssid: ap1, ssid: "home", mbm: dbm * 100} }
		scan(one(-60), rawBSS{bssid: ap2, ssid: "", mbm: -5000}, rawBSS{bssid: "02:00:00:00:03:00", ssid: "old", seen: b.now()})
		b.want(`detected `+ap2+` "" -50 age=0s`, `detected `+ap1+` "home" -60 age=0s`, "scanning false")
		b.Log("# the same again is no news, a change is")
		scan(one(-60))
		b.want("scanning false")
		scan(one(-54))
		b.want(`detected `+ap1+` "home" -54 age=0s`, "scanning false")
		b.Log("# unless it is long ago")
		time.Sleep(detectEvery)
		scan(one(-54))
		b.want(`detected `+ap1+` "home" -54 age=0s`, "scanning false")
		b.Log("# results without a scan of ours")
		time.Sleep(time.Minute)
		x := one(-40)
		x.seen = b.now()
		b.kernel.change(func() { b.wlan.bss = []rawBSS{x} })
		b.send(unix.NL80211_CMD_SCHED_SCAN_RESULTS)
		b.want(`detected ` + ap1 + ` "home" -40 age=0s`)
		b.Log("# the word of the scan came late, behind what it heard")
		time.Sleep(idleEvery / 2) // apart from looks
		late := rawBSS{bssid: "02:00:00:00:04:00", ssid: "late", mbm: -7000, seen: b.now() + mihf.Time(2*time.Second)}
		scan(one(-40), late)
		b.want(`detected 02:00:00:00:04:00 "late" -70 age=1s`, "scanning false")
	})
}

// What was heard before the link was known is told when it is.
func TestDetectedBeforeTheLinkIsKnown(t *testing.T) {
	inBubble(t, station0(), func(f *fake, _ *Options) { f.unknown[wlan0] = true }, func(b *bed) {
		b.seen(true)
		b.send(unix.NL80211_CMD_TRIGGER_SCAN)
		b.kernel.change(func() { b.wlan.bss = []rawBSS{{bssid: ap1, ssid: "home", mbm: -6000, seen: b.now()}} })
		b.send(unix.NL80211_CMD_NEW_SCAN_RESULTS)
		time.Sleep(2 * scanEvery) // they are read
		b.want()
		b.kernel.change(func() { b.kernel.unknown[wlan0] = false })
		time.Sleep(2 * time.Second)
		list := b.seen(false)
		if !slices.ContainsFunc(list, func(s string) bool { return strings.HasPrefix(s, "detected "+ap1) }) {
			t.Errorf("not detected: %q", list)
		}
	})
}

// "64 detections given for a scan", strongest first; the others are counted.
func TestDetectionsAreBounded(t *testing.T) {
	inBubble(t, station0(), nil, func(b *bed) {
		b.seen(true)
		for i := range 1000 {
			b.wlan.bss = append(b.wlan.bss, rawBSS{bssid: fmt.Sprintf("02:00:00:00:%02x:%02x", i/256, i%256), mbm: int32(-9000 + i), seen: b.now()})
		}
		b.send(unix.NL80211_CMD_NEW_SCAN_RESULTS)
		time.Sleep(time.Second)
		list := b.seen(false)
		if len(list) != maxDetected || list[0] != `detected 02:00:00:00:03:e7 "" -80.01 age=1s` {
			b.Errorf("%d: %v", len(list), list[:min(3, len(list))])
		}
		if n := b.sensor.count.undetected.Load(); n != maxTable-maxDetected {
			b.Errorf("%d counted", n)
		}
	})
}

// A flood of results is read once a second.
func TestResultsFlood(t *testing.T) {
	inBubble(t, attached1("home", -50), nil, func(b *bed) {
		b.seen(true)
		before := b.kernel.count(unix.NL80211_CMD_GET_SCAN)
		for range 100 {
			b.send(unix.NL80211_CMD_NEW_SCAN_RESULTS)
			time.Sleep(50 * time.Millisecond)
		}
		if n := b.kernel.count(unix.NL80211_CMD_GET_SCAN) - before; n < 4 || n > 6 {
			b.Errorf("%d readings in 5 s", n)
		}
	})
}

// A scan whose end was not told ends by itself.
func TestScanEnds(t *testing.T) {
	inBubble(t, attached1("home", -50), nil, func(b *bed) {
		b.seen(true)
		b.send(unix.NL80211_CMD_TRIGGER_SCAN)
		b.want("scanning true")
		time.Sleep(scanLasts + time.Second)
		b.want("scanning false")
		b.send(unix.NL80211_CMD_TRIGGER_SCAN)
		b.want("scanning true")
		b.send(unix.NL80211_CMD_SCAN_ABORTED)
		b.want("scanning false")
	})
}

func TestHeardAt(t *testing.T) {
	now := mihf.Time(time.Hour)
	for _, x := range []struct {
		b    bssInfo
		want mihf.Time
	}{
		{bssInfo{}, 0},
		{bssInfo{seen: mihf.Some(uint64(5)), age: mihf.Some(time.Second)}, 5},
		{bssInfo{age: mihf.Some(time.Second)}, now.Add(-time.Second)},
		{bssInfo{age: mihf.Some(2 * time.Hour)}, 1},
		{bssInfo{seen: mihf.Some(uint64(2 * time.Hour))}, now}, // of the future
		{bssInfo{seen: mihf.Some(uint64(1 << 63))}, 0},
	} {
		if got := x.b.at(now); got != x.want {
			t.Errorf("%+v: %v, want %v", x.b, got, x.want)
		}
	}
}
