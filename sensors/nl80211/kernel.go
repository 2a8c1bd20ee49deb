package nl80211

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
)

// conn is a generic netlink socket: a *genetlink.Conn, or what takes its place in a test.
type conn interface {
	GetFamily(name string) (genetlink.Family, error)
	JoinGroup(group uint32) error
	SetReadBuffer(bytes int) error
	SetReadDeadline(t time.Time) error
	Execute(m genetlink.Message, family uint16, flags netlink.HeaderFlags) ([]genetlink.Message, error)
	Receive() ([]genetlink.Message, []netlink.Message, error)
	Close() error
}

const (
	requestTimeout = 5 * time.Second
	// dumpTries is how often a list that changed while it was read is read.
	dumpTries = 3
)

// errTorn says that a list changed while it was read, each time.
var errTorn = errors.New("the list changed while it was read")

// kernel asks the kernel. It is used by one goroutine.
type kernel struct {
	conn   conn
	family genetlink.Family
	count  *counters
	broken func(error) // takes a message that could not be read
}

// request asks and calls each for the data of every message of the answer.
func (k *kernel) request(cmd uint8, flags netlink.HeaderFlags, attrs func(*netlink.AttributeEncoder), each func([]byte) error) error {
	ae := netlink.NewAttributeEncoder()
	attrs(ae)
	data, err := ae.Encode()
	if err != nil {
		return err
	}
	if err := k.conn.SetReadDeadline(time.Now().Add(requestTimeout)); err != nil {
		return err
	}
	list, err := k.conn.Execute(genetlink.Message{
		Header: genetlink.Header{Command: cmd, Version: k.family.Version}, Data: data,
	}, k.family.ID, netlink.Request|flags)
	if err != nil {
		return err
	}
	for _, m := range list {
		if err := sensors.Guard(func() error { return each(m.Data) }); err != nil {
			k.broken(err)
		}
	}
	return nil
}

// dump reads a list of one interface, and again where it changed meanwhile.
func dump[T any](k *kernel, cmd uint8, index int, decode func([]byte) (T, uint32, error)) ([]T, error) {
	return dumpBy(k, cmd, index, decode, func(*T) int { return 0 })
}

// dumpBy is dump for a list whose parts have a generation each; part tells which one an entry
// is of.
func dumpBy[T any](k *kernel, cmd uint8, index int, decode func([]byte) (T, uint32, error), part func(*T) int) ([]T, error) {
	for range dumpTries {
		var out []T
		first := make(map[int]uint32)
		torn := false
		err := k.request(cmd, netlink.Dump, about(index), func(data []byte) error {
			v, generation, err := decode(data)
			if err != nil {
				return err
			}
			if before, known := first[part(&v)]; known && before != generation {
				torn = true
			}
			first[part(&v)] = generation
			out = append(out, v)
			return nil
		})
		if err != nil || !torn {
			return out, err
		}
		k.count.torn.Add(1)
	}
	return nil, errTorn
}

// one reads one thing; found is false where the kernel has none.
func one[T any](k *kernel, cmd uint8, attrs func(*netlink.AttributeEncoder), decode func([]byte) (T, uint32, error)) (v T, found bool, err error) {
	err = k.request(cmd, 0, attrs, func(data []byte) (err error) {
		v, _, err = decode(data)
		found = err == nil
		return err
	})
	if isErrno(err, unix.ENOENT, unix.ENODEV) {
		return v, false, nil
	}
	return v, found, err
}

func about(index int) func(*netlink.AttributeEncoder) {
	return func(ae *netlink.AttributeEncoder) {
		if index != 0 {
			ae.Uint32(unix.NL80211_ATTR_IFINDEX, uint32(index))
		}
	}
}

// interfaces lists all of them. Each radio's own list has a generation.
func (k *kernel) interfaces() ([]iface, error) {
	list, err := dumpBy(k, unix.NL80211_CMD_GET_INTERFACE, 0, decodeInterface, func(i *iface) int { return i.wiphy })
	return list, wrap("read Wi-Fi interfaces", err)
}

func (k *kernel) iface(index int) (iface, bool, error) {
	i, found, err := one(k, unix.NL80211_CMD_GET_INTERFACE, about(index), decodeInterface)
	return i, found, wrap("read Wi-Fi interface", err)
}

func (k *kernel) stations(index int) ([]stationInfo, error) {
	list, err := dump(k, unix.NL80211_CMD_GET_STATION, index, decodeStation)
	if isErrno(err, unix.ENOENT, unix.ENODEV) {
		return nil, nil
	}
	return list, wrap("read stations", err)
}

// station asks for one peer by its address.
func (k *kernel) station(index int, peer mihf.PoA) (stationInfo, bool, error) {
	mac, err := parseAddress(peer)
	if err != nil {
		return stationInfo{}, false, err
	}
	s, found, err := one(k, unix.NL80211_CMD_GET_STATION, func(ae *netlink.AttributeEncoder) {
		about(index)(ae)
		ae.Bytes(unix.NL80211_ATTR_MAC, mac)
	}, decodeStation)
	return s, found, wrap("read station", err)
}

func (k *kernel) scan(index int) ([]bssInfo, error) {
	list, err := dump(k, unix.NL80211_CMD_GET_SCAN, index, decodeBSS)
	return list, wrap("read scan results", err)
}

// survey reads what is known of the channel in use; found is false where the driver
// tells nothing of it.
func (k *kernel) survey(index int) (surveyInfo, bool, error) {
	list, err := dump(k, unix.NL80211_CMD_GET_SURVEY, index, decodeSurvey)
	if err != nil {
		return surveyInfo{}, false, wrap("read channel survey", err)
	}
	for _, s := range list {
		if s.inUse {
			return s, true, nil
		}
	}
	return surveyInfo{}, false, nil
}

// cqmHysteresis is in dB.
const cqmHysteresis = 2

// setCQM asks the driver to say when the signal crosses a level.
func (k *kernel) setCQM(index, dbm int) error {
	ae := func(ae *netlink.AttributeEncoder) {
		about(index)(ae)
		ae.Nested(unix.NL80211_ATTR_CQM, func(ae *netlink.AttributeEncoder) error {
			ae.Int32(unix.NL80211_ATTR_CQM_RSSI_THOLD, int32(dbm))
			ae.Uint32(unix.NL80211_ATTR_CQM_RSSI_HYST, cqmHysteresis)
			return nil
		})
	}
	return wrap("set the signal threshold", k.request(unix.NL80211_CMD_SET_CQM, netlink.Acknowledge, ae, func([]byte) error { return nil }))
}

func isErrno(err error, list ...unix.Errno) bool {
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return false
	}
	return slices.Contains(list, errno)
}

// refused reports whether the kernel or driver answered, and said no: the socket works.
func refused(err error) bool {
	var errno unix.Errno
	return errors.Is(err, errTorn) || errors.As(err, &errno)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
