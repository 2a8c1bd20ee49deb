package nl80211

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/wifi"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
	"mihf.dev/sensors/sensorstest"
)

func TestContract(t *testing.T) {
	sensorstest.Contract(t, func(testing.TB) sensors.Sensor {
		f := newFake(attached1("home", -50))
		return f.sensor(f.options())
	}, func(o *mihf.Observation) bool { return o.Kind == mihf.ObsRadio })
}

// With the real kernel, whatever it has: the contract holds, with a condition at least.
func TestContractOnThisKernel(t *testing.T) {
	sensorstest.Contract(t, func(testing.TB) sensors.Sensor { return New(Options{}) }, func(o *mihf.Observation) bool {
		return o.Kind == mihf.ObsCondition && o.Condition.Condition != mihf.ConditionStarting
	})
}

// W10: without nl80211 the sensor is unavailable, and comes alive when the kernel says
// that the family is there.
func TestFamilyAppears(t *testing.T) {
	inBubble(t, attached1("home", -50), func(f *fake, _ *Options) { f.absent = true }, func(b *bed) {
		const why = "unavailable the kernel has no nl80211 (module cfg80211), so no Wi-Fi: not available"
		b.want("starting", why)
		time.Sleep(10 * time.Minute)
		b.want()
		announce := func(name string) {
			b.kernel.deliver(true, received{msg: genetlink.Message{
				Header: genetlink.Header{Command: unix.CTRL_CMD_NEWFAMILY},
				Data:   attrs(func(ae *netlink.AttributeEncoder) { ae.String(unix.CTRL_ATTR_FAMILY_NAME, name) }),
			}})
		}
		b.kernel.change(func() { b.kernel.absent = false })
		announce("wireguard")
		b.want()
		announce("nl80211")
		b.want("authorised "+ap1+" home", "ok")
	})
}

// The module is unloaded while the sensor runs.
func TestFamilyGoes(t *testing.T) {
	inBubble(t, attached1("home", -50), nil, func(b *bed) {
		b.seen(true)
		b.kernel.change(func() {
			b.kernel.absent = true
			b.kernel.fail[unix.NL80211_CMD_GET_INTERFACE] = unix.ENOENT
		})
		b.send(unix.NL80211_CMD_DEL_INTERFACE)
		time.Sleep(time.Second)
		b.want("unavailable read Wi-Fi interfaces: netlink receive: no such file or directory")
		b.kernel.change(func() {
			b.kernel.absent = false
			clear(b.kernel.fail)
		})
		time.Sleep(sensors.RetryUnavailable)
		b.want("authorised "+ap1+" home", "resync lost=true", "ok")
	})
}

// W09: P2P devices without a network interface, access points and monitors are passed
// over; a machine without a station says so, and goes on when one comes.
func TestInterfaces(t *testing.T) {
	inBubble(t, &rawIface{typ: wifi.InterfaceTypeP2PDevice}, func(f *fake, _ *Options) {
		f.ifaces = append(f.ifaces, &rawIface{index: 8, typ: wifi.InterfaceTypeAP}, &rawIface{index: 9, typ: wifi.InterfaceTypeMonitor})
	}, func(b *bed) {
		b.want("starting", "unavailable no Wi-Fi interface")
		before := b.kernel.count(unix.NL80211_CMD_GET_INTERFACE)
		b.kernel.send(unix.NL80211_CMD_NEW_STATION, func(ae *netlink.AttributeEncoder) { ae.Uint32(unix.NL80211_ATTR_IFINDEX, 8) })
		synctest.Wait()
		if b.kernel.count(unix.NL80211_CMD_GET_INTERFACE) != before {
			b.Error("the clients of an access point are of no interest")
		}
		b.kernel.change(func() { b.kernel.ifaces = append(b.kernel.ifaces, attached1("home", -50)) })
		b.send(unix.NL80211_CMD_NEW_INTERFACE)
		b.want("authorised "+ap1+" home", "ok")
		b.Log("# it becomes an access point")
		b.kernel.change(func() { b.kernel.ifaces[3].typ = wifi.InterfaceTypeAP })
		b.send(unix.NL80211_CMD_SET_INTERFACE)
		time.Sleep(time.Second)
		b.want("none  ", "unavailable no Wi-Fi interface")
		b.Log("# and a station again")
		b.kernel.change(func() { b.kernel.ifaces[3].typ = wifi.InterfaceTypeStation })
		time.Sleep(reconcile)
		b.want("authorised "+ap1+" home", "ok")
	})
}

// "At most 64 interfaces are followed"
func TestTooManyInterfaces(t *testing.T) {
	inBubble(t, station0(), func(f *fake, _ *Options) {
		for i := range maxRadios + 5 {
			f.ifaces = append(f.ifaces, &rawIface{index: 100 + i, typ: wifi.InterfaceTypeStation})
		}
	}, func(b *bed) {
		b.want("starting", "disconnected   unknown 0 local=false", "degraded more than 64 interfaces: 6 are not looked at")
	})
}

// In an ad-hoc network or mesh the peer that is heard best counts; nothing is attached.
func TestPeers(t *testing.T) {
	wlan := &rawIface{index: wlan0, typ: wifi.InterfaceTypeAdHoc, stations: []rawStation{sta(ap1, -80, 0), sta(ap2, -60, 0)}}
	inBubble(t, wlan, nil, func(b *bed) {
		b.want("starting", "ok")
		list := b.samples(10 * time.Second)
		if len(list) < 9 || show(&list[0]) != "radio  rssi_dbm=-60" {
			b.Errorf("%d samples: %v", len(list), list)
		}
	})
}

// Lost messages lead to a complete reading, whose difference is published, then resync.
func TestOverflow(t *testing.T) {
	inBubble(t, attached1("home", -50), nil, func(b *bed) {
		b.seen(true)
		b.set(attached(ap2, -60)) // not heard
		b.kernel.deliver(false, received{err: &netlink.OpError{Op: "receive", Err: unix.ENOBUFS}})
		b.want("authorised "+ap2+" home", "resync lost=true")
		if b.sensor.count.overflows.Load() != 1 || b.sensor.buffer != 2*defaultBuffer {
			b.Errorf("%d overflows, buffer %d", b.sensor.count.overflows.Load(), b.sensor.buffer)
		}
		b.set()
		b.kernel.disconnect(3, false)
		b.want("disconnected " + ap2 + " home explicit_disconnect 3 local=true")
	})
}

// A socket that fails is replaced.
func TestSocketFails(t *testing.T) {
	inBubble(t, attached1("home", -50), nil, func(b *bed) {
		b.seen(true)
		b.kernel.deliver(false, received{err: errors.New("broken")})
		b.want("degraded broken")
		time.Sleep(time.Second)
		b.want("resync lost=true", "ok")
	})
}

// More than can wait for the loop: all is read.
func TestInboxIsBounded(t *testing.T) {
	box := newInbox()
	for range maxWaiting + 1 {
		box.add(event{})
	}
	if events, lost, _ := box.take(); len(events) != maxWaiting || !lost {
		t.Errorf("%d %v", len(events), lost)
	}
	if events, lost, _ := box.take(); len(events) != 0 || lost {
		t.Errorf("then %d %v", len(events), lost)
	}
}

func TestSuspend(t *testing.T) {
	var asleep time.Duration
	f := newFake()
	inBubble(t, attached1("home", -50), func(g *fake, o *Options) {
		f = g
		o.Suspended = func() time.Duration {
			f.mu.Lock()
			defer f.mu.Unlock()
			return asleep
		}
	}, func(b *bed) {
		b.seen(true)
		b.kernel.change(func() { asleep, b.wlan.stations = time.Hour, nil })
		b.send(unix.NL80211_CMD_SET_INTERFACE)
		b.want("disconnected "+ap1+" home unknown 0 local=false", "resync lost=false")
	})
}

// W16: a list that changes while it is read is read again; a torn one changes nothing.
func TestTornDump(t *testing.T) {
	inBubble(t, attached1("home", -50), nil, func(b *bed) {
		b.seen(true)
		b.kernel.change(func() {
			b.wlan.stations = []rawStation{attached(ap2, -60), sta(ap1, -50, 0)}
			b.kernel.torn[unix.NL80211_CMD_GET_STATION] = dumpTries - 1
		})
		b.send(unix.NL80211_CMD_ROAM)
		b.want("authorised " + ap2 + " home")
		b.kernel.change(func() {
			b.wlan.stations = []rawStation{attached(ap1, -60), sta(ap2, -50, 0)}
			b.kernel.torn[unix.NL80211_CMD_GET_STATION] = dumpTries
		})
		b.send(unix.NL80211_CMD_ROAM)
		b.want()
		time.Sleep(refusedEvery)
		b.want("authorised " + ap1 + " home")
		if n := b.sensor.count.torn.Load(); n != 2*dumpTries-1 {
			b.Errorf("%d torn lists", n)
		}
	})
}

// W16: the kernel's list of interfaces has a generation for each radio, and they differ once one
// radio got or lost an interface. That is no change while it is read.
func TestGenerationsOfRadios(t *testing.T) {
	second := &rawIface{wiphy: 1, index: wlan0 + 1, typ: wifi.InterfaceTypeAP}
	inBubble(t, attached1("home", -50), func(f *fake, _ *Options) { f.ifaces = append(f.ifaces, second) }, func(b *bed) {
		b.want("starting", "authorised "+ap1+" home", "ok")
		if n := b.sensor.count.torn.Load(); n != 0 {
			b.Errorf("%d torn lists", n)
		}
	})
}

// W03: what cannot be read costs its message, and is counted.
func TestMalformed(t *testing.T) {
	inBubble(t, attached1("home", -50), func(f *fake, _ *Options) {
		f.bad[unix.NL80211_CMD_GET_INTERFACE] = attrs(func(ae *netlink.AttributeEncoder) { ae.Bytes(unix.NL80211_ATTR_IFTYPE, []byte{1}) })
		f.bad[unix.NL80211_CMD_GET_STATION] = []byte{1, 2, 3, 4, 5}
	}, func(b *bed) {
		b.want("starting", "authorised "+ap1+" home", "ok")
		n := b.sensor.malformed.Count()
		b.kernel.deliver(false, received{msg: genetlink.Message{Data: []byte{255, 255, 1, 0}}})
		synctest.Wait()
		if n == 0 || b.sensor.malformed.Count() <= n {
			b.Errorf("%d counted, then %d", n, b.sensor.malformed.Count())
		}
	})
}

// What a driver refuses ends nothing: the last reading stands, and it is said after a while.
func TestRefused(t *testing.T) {
	inBubble(t, attached1("home", -50), nil, func(b *bed) {
		b.seen(true)
		b.kernel.change(func() { b.kernel.fail[unix.NL80211_CMD_GET_STATION] = unix.EIO })
		b.set()
		time.Sleep(time.Minute)
		b.want("degraded wlan0: read stations: netlink receive: input/output error")
		b.kernel.change(func() { clear(b.kernel.fail) })
		b.set(attached(ap1, -50))
		time.Sleep(time.Minute)
		b.want("ok")
	})
}

// Messages that may not be heard are said, and made up for by looking.
func TestDeaf(t *testing.T) {
	inBubble(t, attached1("home", -50), func(f *fake, _ *Options) { f.noJoin = unix.EPERM }, func(b *bed) {
		b.want("starting", "authorised "+ap1+" home",
			"degraded messages of group config are not heard, so all is looked at every second: operation not permitted")
		b.set()
		time.Sleep(deafEvery + time.Millisecond)
		b.want("disconnected " + ap1 + " home unknown 0 local=false")
		b.set(attached(ap2, -50))
		time.Sleep(deafEvery + time.Millisecond)
		b.want("authorised " + ap2 + " home")
	})
}

// "no threshold set unless SetCQM says so"; then one for each attachment.
func TestCQM(t *testing.T) {
	inBubble(t, attached1("home", -50), nil, func(b *bed) {
		time.Sleep(time.Minute)
		b.to("home", unix.NL80211_CMD_ROAM, attached(ap2, -90))
		if n := b.kernel.count(unix.NL80211_CMD_SET_CQM); n != 0 {
			b.Errorf("set %d times without being told to", n)
		}
		if b.kernel.count(unix.NL80211_CMD_TRIGGER_SCAN) != 0 { // W28
			b.Error("a scan was begun")
		}
	})
	inBubble(t, attached1("home", -50), func(_ *fake, o *Options) { o.SetCQM, o.Near = true, -72 }, func(b *bed) {
		time.Sleep(time.Minute)
		b.to("home", unix.NL80211_CMD_ROAM, attached(ap2, -90))
		var n []int32
		b.kernel.change(func() { n = b.kernel.cqm })
		if len(n) != 2 || n[0] != -72 || n[1] != -72 {
			b.Errorf("set %v", n)
		}
		b.want("starting", "authorised "+ap1+" home", "ok", "authorised "+ap2+" home")
		b.kernel.change(func() { b.kernel.fail[unix.NL80211_CMD_SET_CQM] = unix.EPERM })
		b.to("home", unix.NL80211_CMD_ROAM, attached(ap1, -90))
		b.want("authorised "+ap1+" home",
			"degraded wlan0: set the signal threshold: netlink receive: operation not permitted (set_cqm needs CAP_NET_ADMIN)")
	})
}

func TestCounters(t *testing.T) {
	for _, c := range New(Options{}).Counters() {
		if c.Value != 0 {
			t.Errorf("%s begins with %d", c.Name, c.Value)
		}
	}
}
