package nl80211

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// "A station is attached when the kernel shows it as authorised. A station entry alone
// […] is no attachment": WPA2 by a supplicant, in the order that the kernel has.
func TestAssociation(t *testing.T) {
	inBubble(t, station0(), nil, func(b *bed) {
		b.want("starting", "disconnected   unknown 0 local=false", "ok")
		b.kernel.change(func() { b.wlan.bss = []rawBSS{{bssid: ap1, ssid: "home", mbm: -5000, seen: b.now()}} })
		b.send(unix.NL80211_CMD_TRIGGER_SCAN)
		b.want("scanning true")
		b.send(unix.NL80211_CMD_NEW_SCAN_RESULTS)
		time.Sleep(2 * time.Second)
		b.want("scanning false", `detected `+ap1+` "home" -50 age=1s`)
		b.to("", unix.NL80211_CMD_NEW_STATION, sta(ap1, -50, 0))
		b.want() // gathered with what follows
		b.to("", unix.NL80211_CMD_AUTHENTICATE, sta(ap1, -50, 0))
		b.want("authenticating " + ap1 + " home")
		b.to("", unix.NL80211_CMD_ASSOCIATE, sta(ap1, -50, flagAssociated))
		b.connect(0)
		b.want("associated " + ap1 + " home")
		b.set(attached(ap1, -50)) // the supplicant opens the port; the kernel says nothing
		time.Sleep(authoriseEvery)
		b.want("authorised " + ap1 + " home")
		b.send(unix.NL80211_CMD_PORT_AUTHORIZED)
		time.Sleep(time.Minute)
		b.want()
	})
}

// A roam by the supplicant: no NL80211_CMD_ROAM, but DISCONNECT and CONNECT within 130 ms.
func TestRoamBySupplicant(t *testing.T) {
	wlan := attached1("home", -75)
	inBubble(t, wlan, func(f *fake, _ *Options) {
		wlan.bss = []rawBSS{{bssid: ap1, ssid: "home"}, {bssid: ap2, ssid: "home"}}
	}, func(b *bed) {
		b.want("starting", "authorised "+ap1+" home", "ok")
		b.to("", unix.NL80211_CMD_DEL_STATION)
		b.send(unix.NL80211_CMD_DEAUTHENTICATE)
		b.want() // why it ended is not known yet
		b.kernel.disconnect(1, false)
		b.want("disconnected " + ap1 + " home explicit_disconnect 1 local=true")
		b.to("", unix.NL80211_CMD_NEW_STATION, sta(ap2, -60, 0))
		b.to("", unix.NL80211_CMD_AUTHENTICATE, sta(ap2, -60, 0))
		b.want("authenticating " + ap2 + " home")
		b.to("home", unix.NL80211_CMD_ASSOCIATE, attached(ap2, -60))
		b.connect(0)
		b.want("authorised " + ap2 + " home")
	})
}

// A roam in the driver's firmware, and one whose messages all came before the look: the
// difference of two states is a change of the point of attachment.
func TestRoamAtOnce(t *testing.T) {
	inBubble(t, attached1("home", -75), nil, func(b *bed) {
		b.want("starting", "authorised "+ap1+" home", "ok")
		b.to("home", unix.NL80211_CMD_ROAM, attached(ap2, -60))
		b.want("authorised " + ap2 + " home")
		b.kernel.change(func() { b.wlan.stations = []rawStation{attached(ap1, -50)} })
		b.kernel.disconnect(1, false)
		b.connect(0)
		b.want("disconnected "+ap2+" home explicit_disconnect 1 local=true", "authorised "+ap1+" home")
	})
}

// The driver is held up while it goes to the next access point: that the old attachment
// ended does not wait for its answer, and what was read meanwhile is not believed.
func TestRoamWhileReading(t *testing.T) {
	inBubble(t, attached1("home", -75), nil, func(b *bed) {
		b.seen(true)
		b.kernel.change(func() {
			b.kernel.answered[unix.NL80211_CMD_GET_STATION] = func() {
				b.set()
				b.kernel.disconnect(1, false)
				time.Sleep(time.Millisecond)
			}
		})
		b.send(unix.NL80211_CMD_CH_SWITCH_NOTIFY)
		time.Sleep(10 * time.Millisecond)
		b.want("disconnected " + ap1 + " home explicit_disconnect 1 local=true")
		time.Sleep(time.Minute)
		b.want()
	})
}

func TestWhyItEnded(t *testing.T) {
	for _, x := range []struct {
		name string
		say  func(b *bed)
		want string
	}{
		{"the access point vanished", func(b *bed) {
			b.kernel.beaconLoss()
			time.Sleep(40 * time.Millisecond)
			b.set()
			b.kernel.disconnect(4, false)
		}, "beacon_loss 4 local=false"},
		{"so, with a driver that does not report it", func(b *bed) {
			b.set()
			b.kernel.disconnect(4, false)
		}, "beacon_loss 4 local=false"},
		{"beacons came back, then the supplicant left", func(b *bed) {
			b.kernel.beaconLoss()
			time.Sleep(lossMemory + 1033*time.Millisecond) // between two polls
			b.set()
			b.kernel.disconnect(3, false)
		}, "explicit_disconnect 3 local=true"},
		{"the supplicant left", func(b *bed) {
			b.set()
			b.kernel.disconnect(3, false)
		}, "explicit_disconnect 3 local=true"},
		{"thrown out", func(b *bed) {
			b.set()
			b.kernel.disconnect(5, true)
		}, "no_resource 5 local=false"},
		{"the key exchange failed", func(b *bed) {
			b.set()
			b.kernel.disconnect(15, true)
		}, "authentication_failure 15 local=false"},
		{"idle for the access point", func(b *bed) {
			b.set()
			b.kernel.disconnect(4, true)
		}, "packet_timeout 4 local=false"},
		{"no word at all", func(b *bed) {
			b.set()
			time.Sleep(time.Second)
		}, "unknown 0 local=false"},
	} {
		t.Run(x.name, func(t *testing.T) {
			inBubble(t, attached1("home", -50), nil, func(b *bed) {
				b.want("starting", "authorised "+ap1+" home", "ok")
				x.say(b)
				b.want("disconnected " + ap1 + " home " + x.want)
				time.Sleep(time.Minute)
				b.want()
			})
		})
	}
}

// The reason that comes behind the end is added to it, once.
func TestReasonComesLate(t *testing.T) {
	inBubble(t, attached1("home", -50), nil, func(b *bed) {
		b.seen(true)
		b.to("", unix.NL80211_CMD_DEL_STATION)
		time.Sleep(gatherFor)
		b.want("disconnected " + ap1 + " home unknown 0 local=false")
		b.kernel.disconnect(1, false)
		b.want("disconnected " + ap1 + " home explicit_disconnect 1 local=true")
		b.kernel.disconnect(1, false)
		b.want()
	})
}

func TestAttemptFails(t *testing.T) {
	inBubble(t, station0(), nil, func(b *bed) {
		b.seen(true)
		b.to("", unix.NL80211_CMD_AUTHENTICATE, sta(ap1, -50, 0))
		b.want("authenticating " + ap1 + " ")
		b.set()
		b.connect(17)
		b.want("disconnected " + ap1 + "  authentication_failure 17 local=false")
	})
}

// W01: an empty list of stations alone never ends an attachment.
func TestEmptyList(t *testing.T) {
	wlan := attached1("home", -50)
	inBubble(t, wlan, func(*fake, *Options) {
		wlan.stations[0].quiet = true
		wlan.bss = []rawBSS{{bssid: ap1, ssid: "home", mbm: -5500, associated: true}}
	}, func(b *bed) {
		b.want("starting", "authorised "+ap1+" home", "ok")
		b.Log("# by its address the driver knows the station")
		if list := b.samples(3 * time.Second); len(list) == 0 {
			b.Error("no samples")
		}
		b.Log("# nor by that: what was heard of it in scans, each time once, with its age")
		b.kernel.change(func() { b.wlan.stations, b.wlan.bss[0].seen = nil, b.now().Add(-200*time.Millisecond) })
		list := b.samples(10 * time.Second)
		if len(list) != 1 || !list[0].Values.Has(mihf.ParamBeaconSignal) || list[0].Age < 200*time.Millisecond {
			b.Errorf("%d samples: %v", len(list), list)
		}
		b.Log("# until the kernel says that it is over")
		b.kernel.disconnect(3, false)
		b.want("disconnected "+ap1+" home explicit_disconnect 3 local=true", "ok")
	})
}

func TestOnlyScanResultsIsSaid(t *testing.T) {
	wlan := station0()
	wlan.bss = []rawBSS{{bssid: ap1, ssid: "home", mbm: -5500, associated: true}}
	inBubble(t, wlan, nil, func(b *bed) {
		b.want("starting", "authorised "+ap1+" home",
			"degraded wlan0: the driver shows no station: only the signal of scan results is known")
	})
}

// A direct link to another station (TDLS) is not the attachment.
func TestDirectLink(t *testing.T) {
	wlan := attached1("home", -50)
	wlan.stations = append([]rawStation{sta(ap2, -30, flagAssociated|flagAuthorised|flagTDLS)}, wlan.stations...)
	inBubble(t, wlan, nil, func(b *bed) {
		b.want("starting", "authorised "+ap1+" home", "ok")
	})
}

// A driver that gives no flags: attached is what the scan results show as associated.
func TestNoFlags(t *testing.T) {
	bare := rawStation{mac: ap1, info: func(ae *netlink.AttributeEncoder) { ae.Int8(unix.NL80211_STA_INFO_SIGNAL, -50) }}
	inBubble(t, station0(), nil, func(b *bed) {
		b.seen(true)
		b.to("", unix.NL80211_CMD_AUTHENTICATE, bare)
		b.want("authenticating " + ap1 + " ")
		b.kernel.change(func() { b.wlan.ssid, b.wlan.bss = "home", []rawBSS{{bssid: ap1, ssid: "home", associated: true}} })
		b.connect(0)
		b.want("authorised " + ap1 + " home")
		time.Sleep(time.Minute)
		b.want()
	})
}

// W14: an SSID is its octets.
func TestSSIDOctets(t *testing.T) {
	inBubble(t, attached1("caf\xe9", -50), nil, func(b *bed) {
		b.want("starting", "authorised "+ap1+` caf\xe9`, "ok")
		b.to("caf\xe8", unix.NL80211_CMD_ROAM, attached(ap1, -50))
		b.want("authorised " + ap1 + ` caf\xe8`)
	})
}

// W19: scan results of another network than the one that the interface is in. An access point
// was given another name, and the kernel still lists it with the old one.
func TestScanResultsOfTheOldName(t *testing.T) {
	old, current := rawBSS{bssid: ap1, ssid: "old", mbm: -4000, seen: 1}, rawBSS{bssid: ap1, ssid: "new", mbm: -5000, seen: 2}
	for name, tc := range map[string]struct {
		told       string // of the connection
		associated bool   // the list says which entry it is
	}{"by the connection": {told: "new"}, "by the entry": {associated: true}, "by its age": {}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, station0(), nil, func(b *bed) {
				b.seen(true)
				b.kernel.change(func() {
					b.wlan.ssid, current.associated = tc.told, tc.associated
					b.wlan.bss = []rawBSS{old, current}
				})
				b.to(tc.told, unix.NL80211_CMD_CONNECT, attached(ap1, -50))
				b.want("authorised " + ap1 + " new")
			})
		})
	}
}

// W19: the results were read while the access point had its old name and the station was there.
func TestScanResultsOfTheLastAttachment(t *testing.T) {
	wlan := attached1("", -50)
	wlan.bss = []rawBSS{{bssid: ap1, ssid: "old", mbm: -5000, seen: 1, associated: true}}
	inBubble(t, wlan, nil, func(b *bed) {
		b.want("starting", "authorised "+ap1+" old", "ok")
		b.kernel.change(func() { b.wlan.stations = nil; b.wlan.bss[0].associated = false })
		b.kernel.disconnect(3, false)
		b.seen(true)
		b.kernel.change(func() { b.wlan.bss = append(b.wlan.bss, rawBSS{bssid: ap1, ssid: "new", mbm: -5000, seen: 2}) })
		b.to("", unix.NL80211_CMD_CONNECT, attached(ap1, -50))
		b.want("authorised " + ap1 + " new")
	})
}

// "nothing is said of it before that sensor said that it is there"
func TestLinkFollows(t *testing.T) {
	inBubble(t, attached1("home", -50), func(f *fake, _ *Options) { f.unknown[wlan0] = true }, func(b *bed) {
		time.Sleep(3 * time.Second)
		b.want("starting", "ok")
		b.kernel.change(func() { b.kernel.unknown[wlan0] = false })
		time.Sleep(time.Second)
		b.want("authorised " + ap1 + " home")
		b.Log("# its end is said by that sensor, and all again when it is back")
		b.kernel.change(func() { b.kernel.unknown[wlan0] = true })
		b.send(unix.NL80211_CMD_SET_INTERFACE)
		b.want()
		if list := b.samples(time.Second); len(list) != 0 {
			b.Errorf("%d samples of a link that is not there", len(list))
		}
		b.kernel.change(func() { b.kernel.unknown[wlan0] = false })
		time.Sleep(time.Second)
		b.want("authorised " + ap1 + " home")
	})
}

// Without a sensor of links this one says that a link is gone.
func TestAlone(t *testing.T) {
	inBubble(t, attached1("home", -50), func(_ *fake, o *Options) { o.Link = nil }, func(b *bed) {
		b.want("starting", "authorised "+ap1+" home", "ok")
		b.kernel.change(func() { b.kernel.ifaces = nil })
		b.send(unix.NL80211_CMD_DEL_INTERFACE)
		b.want("link_gone", "unavailable no Wi-Fi interface")
		b.kernel.change(func() { b.kernel.ifaces = []*rawIface{b.wlan} })
		b.send(unix.NL80211_CMD_NEW_INTERFACE)
		synctest.Wait()
		b.want("authorised "+ap1+" home", "ok")
	})
}
