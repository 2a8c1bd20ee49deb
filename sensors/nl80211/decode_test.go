package nl80211

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/wifi"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
)

func equalOpts() cmp.Option {
	return cmp.Exporter(func(reflect.Type) bool { return true })
}

// full is a station with everything that is read.
func full() rawStation {
	return rawStation{
		mac: ap1,
		info: func(ae *netlink.AttributeEncoder) {
			ae.Int8(unix.NL80211_STA_INFO_SIGNAL, -71)
			ae.Int8(unix.NL80211_STA_INFO_SIGNAL_AVG, -70)
			ae.Int8(unix.NL80211_STA_INFO_BEACON_SIGNAL_AVG, -69)
			ae.Uint32(unix.NL80211_STA_INFO_INACTIVE_TIME, 120)
			ae.Uint32(unix.NL80211_STA_INFO_RX_PACKETS, 1)
			ae.Uint32(unix.NL80211_STA_INFO_TX_PACKETS, 2)
			ae.Uint32(unix.NL80211_STA_INFO_TX_RETRIES, 3)
			ae.Uint32(unix.NL80211_STA_INFO_TX_FAILED, 4)
			ae.Uint32(unix.NL80211_STA_INFO_BEACON_LOSS, 5)
			ae.Uint32(unix.NL80211_STA_INFO_EXPECTED_THROUGHPUT, 30000)
			rate := func(wide bool) func(*netlink.AttributeEncoder) error {
				return func(ae *netlink.AttributeEncoder) error {
					ae.Uint16(unix.NL80211_RATE_INFO_BITRATE, 540)
					if wide {
						ae.Uint32(unix.NL80211_RATE_INFO_BITRATE32, 70000)
					}
					return nil
				}
			}
			ae.Nested(unix.NL80211_STA_INFO_TX_BITRATE, rate(true))
			ae.Nested(unix.NL80211_STA_INFO_RX_BITRATE, rate(false))
			staFlags(ae, flagAssociated)
		},
	}
}

func TestDecodeStation(t *testing.T) {
	want := stationInfo{
		mac: ap1, flags: flags{mask: flagAuthorised | flagAssociated | flagTDLS, set: flagAssociated},
		signal: mihf.Some(int8(-71)), average: mihf.Some(int8(-70)), beacons: mihf.Some(int8(-69)),
		inactive: mihf.Some(120 * time.Millisecond), rxPackets: mihf.Some(uint32(1)),
		txPackets: mihf.Some(uint32(2)), txRetries: mihf.Some(uint32(3)), txFailed: mihf.Some(uint32(4)),
		beaconLoss: mihf.Some(uint32(5)), txRate: mihf.Some(7e9), rxRate: mihf.Some(54e6), throughput: mihf.Some(3e7),
	}
	s := full()
	got, generation, err := decodeStation(s.encode(9))
	if err != nil || generation != 9 {
		t.Fatal(generation, err)
	}
	if d := cmp.Diff(want, got, equalOpts()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	// W13, W02: each attribute may be missing, and is absent then.
	s = rawStation{mac: ap1, info: func(*netlink.AttributeEncoder) {}}
	if got, _, err = decodeStation(s.encode(0)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(stationInfo{mac: ap1}, got, equalOpts()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if _, _, err = decodeStation(attrs(func(ae *netlink.AttributeEncoder) { ae.Uint32(unix.NL80211_ATTR_IFINDEX, 3) })); err == nil {
		t.Error("a station without an address")
	}
}

// W15: the legs of a multi-link association.
func TestDecodeLegs(t *testing.T) {
	s := rawStation{mac: ap1, more: func(ae *netlink.AttributeEncoder) {
		ae.Nested(unix.NL80211_ATTR_MLO_LINKS, func(ae *netlink.AttributeEncoder) error {
			for n, dbm := range []int8{-80, -60} {
				ae.Nested(uint16(n), func(ae *netlink.AttributeEncoder) error {
					ae.Uint8(unix.NL80211_ATTR_MLO_LINK_ID, uint8(n))
					ae.Bytes(unix.NL80211_ATTR_MAC, mac(ap2))
					ae.Nested(unix.NL80211_ATTR_STA_INFO, func(ae *netlink.AttributeEncoder) error {
						ae.Int8(unix.NL80211_STA_INFO_SIGNAL, dbm)
						return nil
					})
					return nil
				})
			}
			return nil
		})
	}}
	got, _, err := decodeStation(s.encode(0))
	if err != nil || len(got.legs) != 2 || got.legs[1].signal.Or(0) != -60 || got.legs[0].mac != ap2 {
		t.Errorf("%+v %v", got, err)
	}
}

// W03: a short or empty attribute is an error, never a panic.
func TestShortAttributes(t *testing.T) {
	for _, x := range []struct {
		typ uint16
		n   int
	}{{unix.NL80211_STA_INFO_SIGNAL, 0}, {unix.NL80211_STA_INFO_INACTIVE_TIME, 2}, {unix.NL80211_STA_INFO_STA_FLAGS, 7}} {
		s := rawStation{mac: ap1, info: func(ae *netlink.AttributeEncoder) { ae.Bytes(x.typ, make([]byte, x.n)) }}
		if _, _, err := decodeStation(s.encode(0)); err == nil {
			t.Errorf("attribute %d with %d bytes is taken", x.typ, x.n)
		}
	}
	short := attrs(func(ae *netlink.AttributeEncoder) { ae.Bytes(unix.NL80211_ATTR_IFTYPE, []byte{1}) })
	if err := sensors.Guard(func() error { _, _, err := decodeInterface(short); return err }); err == nil {
		t.Error("a short interface type is taken")
	}
}

// W06: -71 stays -71; every octet is a signal or none.
func TestSignalOctets(t *testing.T) {
	for b := range 256 {
		s := rawStation{mac: ap1, info: func(ae *netlink.AttributeEncoder) { ae.Bytes(unix.NL80211_STA_INFO_SIGNAL, []byte{byte(b)}) }}
		got, _, err := decodeStation(s.encode(0))
		if err != nil {
			t.Fatal(err)
		}
		var p sampler
		var count counters
		p.cfg = &config{count: &count}
		values := p.take(1, &got, bssInfo{})
		v, ok := values.Get(mihf.ParamRSSI)
		want := int8(b)
		switch {
		case want >= -110 && want <= -10:
			if !ok || v != float64(want) || count.rejected.Load() != 0 {
				t.Errorf("octet %#x: %v %v", b, v, ok)
			}
		case ok:
			t.Errorf("octet %#x gives %v", b, v)
		case want != 0 && count.rejected.Load() != 1: // W04: rejected and counted
			t.Errorf("octet %#x is not counted", b)
		case want == 0 && count.rejected.Load() != 0: // W02: 0 is how drivers say that they know none
			t.Error("0 is counted as wrong")
		}
	}
}

func TestDecodeInterface(t *testing.T) {
	i := rawIface{index: 3, typ: wifi.InterfaceTypeStation, ssid: "caf\xe9"}
	got, generation, err := decodeInterface(i.encode(4))
	want := iface{index: 3, name: "wlan0", typ: wifi.InterfaceTypeStation, ssid: []byte("caf\xe9")}
	if d := cmp.Diff(want, got, equalOpts()); d != "" || err != nil || generation != 4 {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	// W09
	for typ, follows := range map[wifi.InterfaceType]bool{
		wifi.InterfaceTypeStation: true, wifi.InterfaceTypeP2PClient: true, wifi.InterfaceTypeAdHoc: true,
		wifi.InterfaceTypeMeshPoint: true, wifi.InterfaceTypeAP: false, wifi.InterfaceTypeMonitor: false,
		wifi.InterfaceTypeP2PDevice: false, 99: false,
	} {
		if x := (iface{index: 1, typ: typ}); x.follows() != follows {
			t.Errorf("%v: %v", typ, x.follows())
		}
		if x := (iface{typ: typ}); x.follows() {
			t.Errorf("%v without an ifindex is followed", typ)
		}
	}
}

func TestDecodeBSS(t *testing.T) {
	b := rawBSS{bssid: ap1, ssid: "\xc4\xe3\xba\xc3", mbm: -6150, seen: 12345, associated: true, mld: ap2}
	got, generation, err := decodeBSS(b.encode(5))
	want := bssInfo{
		bssid: ap1, ssid: []byte("\xc4\xe3\xba\xc3"), signal: mihf.Some(int32(-6150)),
		seen: mihf.Some(uint64(12345)), associated: true, mld: ap2,
	}
	if d := cmp.Diff(want, got, equalOpts()); d != "" || err != nil || generation != 5 {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
}

// W14: two SSIDs are equal only if their octets are; a hidden one is none.
func TestSSID(t *testing.T) {
	for _, x := range []struct {
		name     string
		elements string
		want     []byte
	}{
		{"octets", "\x00\x04\xc4\xe3\xba\xc3", []byte("\xc4\xe3\xba\xc3")},
		{"not UTF-8", "\x00\x04caf\xe9", []byte("caf\xe9")},
		{"behind others", "\x01\x01\x82\x00\x02ab", []byte("ab")},
		{"hidden, empty", "\x00\x00", nil},
		{"hidden, zeros", "\x00\x04\x00\x00\x00\x00", nil},
		{"zeros inside are its own", "\x00\x03a\x00b", []byte("a\x00b")},
		{"cut short", "\x00\x05ab", nil},
		{"too long", "\x00\x21" + string(make([]byte, 32)) + "x", nil},
		{"nothing", "", nil},
		{"no length", "\x00", nil},
	} {
		if d := cmp.Diff(x.want, ssidElement([]byte(x.elements))); d != "" {
			t.Errorf("%s: (-want +got)\n%s", x.name, d)
		}
	}
}

// The name of a network that hides in probe responses may be in its beacons.
func TestSSIDOfBeacon(t *testing.T) {
	data := attrs(func(ae *netlink.AttributeEncoder) {
		ae.Nested(unix.NL80211_ATTR_BSS, func(ae *netlink.AttributeEncoder) error {
			ae.Bytes(unix.NL80211_BSS_BEACON_IES, []byte("\x00\x02ab"))
			ae.Bytes(unix.NL80211_BSS_BSSID, mac(ap1))
			ae.Bytes(unix.NL80211_BSS_INFORMATION_ELEMENTS, []byte("\x00\x00"))
			return nil
		})
	})
	if b, _, err := decodeBSS(data); err != nil || string(b.ssid) != "ab" {
		t.Errorf("%+v %v", b, err)
	}
}

func TestDecodeSurvey(t *testing.T) {
	i := rawIface{survey: [][2]uint64{{1000, 250}}}
	got, _, err := decodeSurvey(i.nextSurvey()[1])
	want := surveyInfo{inUse: true, active: mihf.Some(uint64(1000)), busy: mihf.Some(uint64(250))}
	if d := cmp.Diff(want, got, equalOpts()); d != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
}

func TestDecodeEvent(t *testing.T) {
	quality := func(f func(ae *netlink.AttributeEncoder)) func(*netlink.AttributeEncoder) {
		return func(ae *netlink.AttributeEncoder) {
			on0(ae)
			ae.Nested(unix.NL80211_ATTR_CQM, func(ae *netlink.AttributeEncoder) error { f(ae); return nil })
		}
	}
	for _, x := range []struct {
		name string
		data func(*netlink.AttributeEncoder)
		want event
	}{
		{"disconnected by the access point", func(ae *netlink.AttributeEncoder) {
			on0(ae)
			ae.Uint16(unix.NL80211_ATTR_REASON_CODE, 3)
			ae.Flag(unix.NL80211_ATTR_DISCONNECTED_BY_AP, true)
		}, event{index: wlan0, reason: mihf.Some(uint16(3)), byAP: true}},
		{"attempt", func(ae *netlink.AttributeEncoder) {
			on0(ae)
			ae.Uint16(unix.NL80211_ATTR_STATUS_CODE, 17)
			ae.Flag(unix.NL80211_ATTR_TIMED_OUT, true)
		}, event{index: wlan0, status: mihf.Some(uint16(17)), failed: true}},
		{"low", quality(func(ae *netlink.AttributeEncoder) {
			ae.Uint32(unix.NL80211_ATTR_CQM_RSSI_THRESHOLD_EVENT, unix.NL80211_CQM_RSSI_THRESHOLD_EVENT_LOW)
			ae.Int32(unix.NL80211_ATTR_CQM_RSSI_LEVEL, -83)
		}), event{index: wlan0, cqm: cqm{low: true}}},
		{"high", quality(func(ae *netlink.AttributeEncoder) {
			ae.Uint32(unix.NL80211_ATTR_CQM_RSSI_THRESHOLD_EVENT, unix.NL80211_CQM_RSSI_THRESHOLD_EVENT_HIGH)
		}), event{index: wlan0, cqm: cqm{high: true}}},
		{"beacon loss", quality(func(ae *netlink.AttributeEncoder) {
			ae.Flag(unix.NL80211_ATTR_CQM_BEACON_LOSS_EVENT, true)
		}), event{index: wlan0, cqm: cqm{beaconLoss: true}}},
		{"packet loss", quality(func(ae *netlink.AttributeEncoder) {
			ae.Uint32(unix.NL80211_ATTR_CQM_PKT_LOSS_EVENT, 50)
		}), event{index: wlan0, cqm: cqm{losses: true}}},
		{"nothing", func(*netlink.AttributeEncoder) {}, event{}},
	} {
		got, err := decodeEvent(0, attrs(x.data))
		if d := cmp.Diff(x.want, got, equalOpts()); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", x.name, err, d)
		}
	}
}

// decoders are all that take octets from the kernel.
var decoders = map[string]func([]byte) error{
	"interface": func(b []byte) error { _, _, err := decodeInterface(b); return err },
	"station":   func(b []byte) error { _, _, err := decodeStation(b); return err },
	"bss":       func(b []byte) error { _, _, err := decodeBSS(b); return err },
	"survey":    func(b []byte) error { _, _, err := decodeSurvey(b); return err },
	"event":     func(b []byte) error { _, err := decodeEvent(1, b); return err },
}

// Whatever the kernel sends, what is decoded is in range; own decoders do not panic, and
// the library's panic costs its message only.
func fuzz(f *testing.F, name string, seed ...[]byte) {
	f.Helper()
	for _, s := range seed {
		f.Add(s)
		f.Add(s[:len(s)/2])
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		err := sensors.Guard(func() error { return decoders[name](b) })
		var p *sensors.PanicError
		if name != "interface" && errors.As(err, &p) {
			t.Fatalf("%v\n%s", p, p.Stack)
		}
		if name == "station" && err == nil {
			s, _, _ := decodeStation(b)
			smp := sampler{cfg: &config{count: new(counters)}}
			values := smp.take(1, &s, bssInfo{})
			values.All(func(p mihf.Parameter, v float64) bool {
				if p.Check(v) != nil || math.IsNaN(v) {
					t.Errorf("%v is %v", p, v)
				}
				return true
			})
		}
	})
}

func FuzzInterface(f *testing.F) { fuzz(f, "interface", station0().encode(1)) }

func FuzzStation(f *testing.F) {
	s := full()
	fuzz(f, "station", s.encode(1))
}

func FuzzBSS(f *testing.F) {
	b := rawBSS{bssid: ap1, ssid: "home", mld: ap2, associated: true}
	fuzz(f, "bss", b.encode(1))
}

func FuzzSurvey(f *testing.F) {
	i := rawIface{survey: [][2]uint64{{9, 1}}}
	fuzz(f, "survey", i.nextSurvey()[1])
}

func FuzzEvent(f *testing.F) {
	fuzz(f, "event", attrs(func(ae *netlink.AttributeEncoder) {
		on0(ae)
		ae.Uint16(unix.NL80211_ATTR_REASON_CODE, 4)
		ae.Nested(unix.NL80211_ATTR_CQM, func(ae *netlink.AttributeEncoder) error {
			ae.Uint32(unix.NL80211_ATTR_CQM_RSSI_THRESHOLD_EVENT, 1)
			return nil
		})
	}))
}
