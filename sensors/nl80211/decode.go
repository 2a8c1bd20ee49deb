package nl80211

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/wifi"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// iface is what NL80211_CMD_NEW_INTERFACE says of an interface.
type iface struct {
	wiphy int    // the radio that it belongs to
	index int    // 0: a wireless device without a network interface, such as a P2P device
	name  string // arbitrary octets
	typ   wifi.InterfaceType
	ssid  []byte // of the network it is connected to; nil: none, or not told
}

// follows reports whether interfaces of the type are looked at: those that have a peer
// whose loss would be a loss of the link.
func (i *iface) follows() bool { return i.index > 0 && (i.station() || i.peers()) }

// station reports whether the interface attaches to an access point.
func (i *iface) station() bool {
	return i.typ == wifi.InterfaceTypeStation || i.typ == wifi.InterfaceTypeP2PClient
}

// peers reports whether the interface has peers of equal rank and no attachment.
func (i *iface) peers() bool {
	return i.typ == wifi.InterfaceTypeAdHoc || i.typ == wifi.InterfaceTypeMeshPoint
}

// flags are a station's NL80211_STA_FLAG_*; what is not in mask is not known.
type flags struct{ mask, set uint32 }

func (f flags) is(flag int) mihf.Opt[bool] {
	if f.mask&(1<<flag) == 0 {
		return mihf.Opt[bool]{}
	}
	return mihf.Some(f.set&(1<<flag) != 0)
}

// stationInfo is what NL80211_CMD_NEW_STATION says of a peer, as an answer: only what the
// driver gave is known.
type stationInfo struct {
	mac   mihf.PoA
	flags flags

	signal, average, beacons mihf.Opt[int8] // dBm; beacons: their average

	inactive                       mihf.Opt[time.Duration]
	rxPackets                      mihf.Opt[uint32]
	txPackets, txRetries, txFailed mihf.Opt[uint32]
	beaconLoss                     mihf.Opt[uint32] // times, since the association

	txRate, rxRate, throughput mihf.Opt[float64] // bit/s

	legs []stationInfo // of a multi-link association (Linux 6.17); mac is the leg's
}

// bssInfo is one entry of the kernel's scan results.
type bssInfo struct {
	bssid      mihf.PoA
	ssid       []byte           // nil: hidden, or not told
	signal     mihf.Opt[int32]  // 1/100 dBm
	quality    mihf.Opt[uint8]  // percent, where the driver knows no dBm
	seen       mihf.Opt[uint64] // boot time, in ns
	age        mihf.Opt[time.Duration]
	associated bool     // it is the one that the interface is associated with, or a leg of it
	mld        mihf.PoA // address of the multi-link device that it is a leg of; "": none
}

// surveyInfo is what is known of one channel. Times count since the driver began.
type surveyInfo struct {
	inUse        bool
	active, busy mihf.Opt[uint64] // ms
}

var errAttr = errors.New("attribute has a wrong length")

// attributes calls f for each attribute in b.
func attributes(b []byte, f func(ad *netlink.AttributeDecoder) error) error {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return err
	}
	for ad.Next() {
		typ := ad.Type()
		if err := f(ad); err != nil {
			return fmt.Errorf("attribute %d: %w", typ, err)
		}
		if err := ad.Err(); err != nil {
			return fmt.Errorf("attribute %d: %w", typ, err)
		}
	}
	return ad.Err()
}

// nested calls f for each attribute nested in the current one.
func nested(ad *netlink.AttributeDecoder, f func(ad *netlink.AttributeDecoder) error) error {
	return attributes(ad.Bytes(), f)
}

// address reads a MAC address.
func address(ad *netlink.AttributeDecoder, to *mihf.PoA) error {
	b := ad.Bytes()
	if len(b) != 6 {
		return errAttr
	}
	*to = mihf.PoA(net.HardwareAddr(b).String())
	return nil
}

func millis(v uint32) mihf.Opt[time.Duration] {
	return mihf.Some(time.Duration(v) * time.Millisecond)
}

// decodeInterface also returns the generation of the kernel's list. The library reads
// what it can; it panics on short attributes and does not know the SSID.
func decodeInterface(data []byte) (i iface, generation uint32, err error) {
	list, err := wifi.ParseInterfaces([]genetlink.Message{{Data: data}})
	if err != nil {
		return iface{}, 0, fmt.Errorf("interface: %w", err)
	}
	i = iface{wiphy: list[0].PHY, index: list[0].Index, name: list[0].Name, typ: list[0].Type}
	err = attributes(data, func(ad *netlink.AttributeDecoder) error {
		switch ad.Type() {
		case unix.NL80211_ATTR_SSID:
			i.ssid = ssid(ad.Bytes())
		case unix.NL80211_ATTR_GENERATION:
			generation = ad.Uint32()
		}
		return nil
	})
	if err != nil {
		return iface{}, 0, fmt.Errorf("interface %d: %w", i.index, err)
	}
	return i, generation, nil
}

// ssid copies the octets of an SSID; nil where they are none or a placeholder of zeros.
func ssid(b []byte) []byte {
	const longest = 32
	if len(b) > longest || len(bytes.Trim(b, "\x00")) == 0 {
		return nil
	}
	return bytes.Clone(b)
}

func decodeStation(data []byte) (s stationInfo, generation uint32, err error) {
	err = attributes(data, func(ad *netlink.AttributeDecoder) error {
		switch ad.Type() {
		case unix.NL80211_ATTR_MAC:
			return address(ad, &s.mac)
		case unix.NL80211_ATTR_STA_INFO:
			return nested(ad, s.read)
		case unix.NL80211_ATTR_MLO_LINKS:
			return nested(ad, s.readLeg)
		case unix.NL80211_ATTR_GENERATION:
			generation = ad.Uint32()
		}
		return nil
	})
	if err == nil && s.mac == "" {
		err = errors.New("no address")
	}
	if err != nil {
		return stationInfo{}, 0, fmt.Errorf("station: %w", err)
	}
	return s, generation, nil
}

// read takes one attribute of NL80211_ATTR_STA_INFO.
func (s *stationInfo) read(ad *netlink.AttributeDecoder) error {
	var err error
	switch ad.Type() {
	case unix.NL80211_STA_INFO_SIGNAL:
		s.signal = mihf.Some(ad.Int8())
	case unix.NL80211_STA_INFO_SIGNAL_AVG:
		s.average = mihf.Some(ad.Int8())
	case unix.NL80211_STA_INFO_BEACON_SIGNAL_AVG:
		s.beacons = mihf.Some(ad.Int8())
	case unix.NL80211_STA_INFO_INACTIVE_TIME:
		s.inactive = millis(ad.Uint32())
	case unix.NL80211_STA_INFO_RX_PACKETS:
		s.rxPackets = mihf.Some(ad.Uint32())
	case unix.NL80211_STA_INFO_TX_PACKETS:
		s.txPackets = mihf.Some(ad.Uint32())
	case unix.NL80211_STA_INFO_TX_RETRIES:
		s.txRetries = mihf.Some(ad.Uint32())
	case unix.NL80211_STA_INFO_TX_FAILED:
		s.txFailed = mihf.Some(ad.Uint32())
	case unix.NL80211_STA_INFO_BEACON_LOSS:
		s.beaconLoss = mihf.Some(ad.Uint32())
	case unix.NL80211_STA_INFO_TX_BITRATE:
		s.txRate, err = decodeRate(ad)
	case unix.NL80211_STA_INFO_RX_BITRATE:
		s.rxRate, err = decodeRate(ad)
	case unix.NL80211_STA_INFO_EXPECTED_THROUGHPUT:
		s.throughput = mihf.Some(float64(ad.Uint32()) * 1e3) // kbit/s
	case unix.NL80211_STA_INFO_STA_FLAGS: // struct nl80211_sta_flag_update
		b := ad.Bytes()
		if len(b) < 8 {
			return errAttr
		}
		s.flags = flags{mask: ad.ByteOrder.Uint32(b), set: ad.ByteOrder.Uint32(b[4:])}
	}
	return err
}

// readLeg takes one element of NL80211_ATTR_MLO_LINKS.
func (s *stationInfo) readLeg(ad *netlink.AttributeDecoder) error {
	var leg stationInfo
	err := nested(ad, func(ad *netlink.AttributeDecoder) error {
		switch ad.Type() {
		case unix.NL80211_ATTR_MAC:
			return address(ad, &leg.mac)
		case unix.NL80211_ATTR_STA_INFO:
			return nested(ad, leg.read)
		}
		return nil
	})
	if err == nil && len(s.legs) < maxLegs {
		s.legs = append(s.legs, leg)
	}
	return err
}

// maxLegs is how many links a multi-link association may have (IEEE 802.11be).
const maxLegs = 15

// decodeRate reads NL80211_RATE_INFO_*, in bit/s.
func decodeRate(ad *netlink.AttributeDecoder) (mihf.Opt[float64], error) {
	const unit = 1e5 // 100 kbit/s
	var narrow, wide mihf.Opt[float64]
	err := nested(ad, func(ad *netlink.AttributeDecoder) error {
		switch ad.Type() {
		case unix.NL80211_RATE_INFO_BITRATE: // only where it fits into 16 bits
			narrow = mihf.Some(float64(ad.Uint16()) * unit)
		case unix.NL80211_RATE_INFO_BITRATE32:
			wide = mihf.Some(float64(ad.Uint32()) * unit)
		}
		return nil
	})
	if wide.Known() {
		return wide, err
	}
	return narrow, err
}

func decodeBSS(data []byte) (b bssInfo, generation uint32, err error) {
	var beacon []byte
	err = attributes(data, func(ad *netlink.AttributeDecoder) error {
		switch ad.Type() {
		case unix.NL80211_ATTR_GENERATION:
			generation = ad.Uint32()
		case unix.NL80211_ATTR_BSS:
			return nested(ad, func(ad *netlink.AttributeDecoder) error { return b.read(ad, &beacon) })
		}
		return nil
	})
	if err == nil && b.bssid == "" {
		err = errors.New("no address")
	}
	if err != nil {
		return bssInfo{}, 0, fmt.Errorf("scan result: %w", err)
	}
	if b.ssid == nil {
		b.ssid = beacon
	}
	return b, generation, nil
}

// read takes one attribute of NL80211_ATTR_BSS; beacon is the SSID in its beacons.
func (b *bssInfo) read(ad *netlink.AttributeDecoder, beacon *[]byte) error {
	switch ad.Type() {
	case unix.NL80211_BSS_BSSID:
		return address(ad, &b.bssid)
	case unix.NL80211_BSS_MLD_ADDR:
		return address(ad, &b.mld)
	case unix.NL80211_BSS_INFORMATION_ELEMENTS:
		b.ssid = ssidElement(ad.Bytes())
	case unix.NL80211_BSS_BEACON_IES:
		*beacon = ssidElement(ad.Bytes())
	case unix.NL80211_BSS_SIGNAL_MBM:
		b.signal = mihf.Some(ad.Int32())
	case unix.NL80211_BSS_SIGNAL_UNSPEC:
		b.quality = mihf.Some(ad.Uint8())
	case unix.NL80211_BSS_LAST_SEEN_BOOTTIME:
		b.seen = mihf.Some(ad.Uint64())
	case unix.NL80211_BSS_SEEN_MS_AGO:
		b.age = millis(ad.Uint32())
	case unix.NL80211_BSS_STATUS:
		switch ad.Uint32() {
		case unix.NL80211_BSS_STATUS_ASSOCIATED, unix.NL80211_BSS_STATUS_IBSS_JOINED:
			b.associated = true
		}
	}
	return nil
}

// ssidElement finds the SSID in a list of 802.11 elements, which may end anywhere: it is
// what the other side sent.
func ssidElement(b []byte) []byte {
	for len(b) >= 2 {
		id, n := b[0], int(b[1])
		if n > len(b)-2 {
			return nil
		}
		if id == 0 {
			return ssid(b[2 : 2+n])
		}
		b = b[2+n:]
	}
	return nil
}

func decodeSurvey(data []byte) (s surveyInfo, generation uint32, err error) {
	err = attributes(data, func(ad *netlink.AttributeDecoder) error {
		switch ad.Type() {
		case unix.NL80211_ATTR_GENERATION:
			generation = ad.Uint32()
		case unix.NL80211_ATTR_SURVEY_INFO:
			return nested(ad, func(ad *netlink.AttributeDecoder) error {
				switch ad.Type() {
				case unix.NL80211_SURVEY_INFO_IN_USE:
					s.inUse = true
				case unix.NL80211_SURVEY_INFO_TIME:
					s.active = mihf.Some(ad.Uint64())
				case unix.NL80211_SURVEY_INFO_TIME_BUSY:
					s.busy = mihf.Some(ad.Uint64())
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return surveyInfo{}, 0, fmt.Errorf("survey: %w", err)
	}
	return s, generation, nil
}
