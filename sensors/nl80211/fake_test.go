package nl80211

import (
	"bytes"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/wifi"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

const (
	wlan0 = 3
	link0 = mihf.LinkID("wifi-0000abcd")
	ap1   = "02:00:00:00:01:00"
	ap2   = "02:00:00:00:02:00"
)

// attrs encodes attributes as the kernel does.
func attrs(f func(ae *netlink.AttributeEncoder)) []byte {
	ae := netlink.NewAttributeEncoder()
	f(ae)
	b, err := ae.Encode()
	if err != nil {
		panic(err)
	}
	return b
}

func mac(s string) []byte {
	b, err := net.ParseMAC(s)
	if err != nil {
		panic(err)
	}
	return b
}

// rawStation is a peer as the driver has it: the attributes of NL80211_ATTR_STA_INFO.
type rawStation struct {
	mac   string
	info  func(ae *netlink.AttributeEncoder)
	more  func(ae *netlink.AttributeEncoder) // beside it
	quiet bool                               // left out of the list
}

const (
	flagAuthorised = 1 << unix.NL80211_STA_FLAG_AUTHORIZED
	flagAssociated = 1 << unix.NL80211_STA_FLAG_ASSOCIATED
	flagTDLS       = 1 << unix.NL80211_STA_FLAG_TDLS_PEER
)

func staFlags(ae *netlink.AttributeEncoder, set uint32) {
	b := make([]byte, 8)
	ae.ByteOrder.PutUint32(b, flagAuthorised|flagAssociated|flagTDLS)
	ae.ByteOrder.PutUint32(b[4:], set)
	ae.Bytes(unix.NL80211_STA_INFO_STA_FLAGS, b)
}

// sta is a peer with a signal and flags.
func sta(addr string, dbm int, set uint32) rawStation {
	return rawStation{mac: addr, info: func(ae *netlink.AttributeEncoder) {
		ae.Int8(unix.NL80211_STA_INFO_SIGNAL, int8(dbm))
		staFlags(ae, set)
	}}
}

func attached(addr string, dbm int) rawStation { return sta(addr, dbm, flagAssociated|flagAuthorised) }

func (s *rawStation) encode(generation uint32) []byte {
	return attrs(func(ae *netlink.AttributeEncoder) {
		ae.Bytes(unix.NL80211_ATTR_MAC, mac(s.mac))
		ae.Uint32(unix.NL80211_ATTR_GENERATION, generation)
		if s.info != nil {
			ae.Nested(unix.NL80211_ATTR_STA_INFO, func(ae *netlink.AttributeEncoder) error { s.info(ae); return nil })
		}
		if s.more != nil {
			s.more(ae)
		}
	})
}

// rawBSS is a scan result as the kernel has it.
type rawBSS struct {
	bssid, ssid, mld string
	mbm              int32
	seen             mihf.Time
	associated       bool
}

func (b *rawBSS) encode(generation uint32) []byte {
	return attrs(func(ae *netlink.AttributeEncoder) {
		ae.Uint32(unix.NL80211_ATTR_GENERATION, generation)
		ae.Nested(unix.NL80211_ATTR_BSS, func(ae *netlink.AttributeEncoder) error {
			ae.Bytes(unix.NL80211_BSS_BSSID, mac(b.bssid))
			ae.Bytes(unix.NL80211_BSS_INFORMATION_ELEMENTS, append([]byte{1, 1, 2, 0, byte(len(b.ssid))}, b.ssid...))
			ae.Int32(unix.NL80211_BSS_SIGNAL_MBM, b.mbm)
			ae.Uint64(unix.NL80211_BSS_LAST_SEEN_BOOTTIME, uint64(b.seen))
			if b.mld != "" {
				ae.Bytes(unix.NL80211_BSS_MLD_ADDR, mac(b.mld))
			}
			if b.associated {
				ae.Uint32(unix.NL80211_BSS_STATUS, unix.NL80211_BSS_STATUS_ASSOCIATED)
			}
			return nil
		})
	})
}

// rawIface is an interface as the kernel has it.
type rawIface struct {
	wiphy int // the radio; each one's list has a generation
	index int // 0: none, as of a P2P device
	typ   wifi.InterfaceType
	ssid  string

	stations []rawStation
	bss      []rawBSS
	survey   [][2]uint64 // active and busy, one an answer; the last one stays
}

func (i *rawIface) encode(generation uint32) []byte {
	return attrs(func(ae *netlink.AttributeEncoder) {
		if i.index != 0 {
			ae.Uint32(unix.NL80211_ATTR_IFINDEX, uint32(i.index))
			ae.String(unix.NL80211_ATTR_IFNAME, "wlan0")
		}
		ae.Uint32(unix.NL80211_ATTR_WIPHY, uint32(i.wiphy))
		ae.Uint32(unix.NL80211_ATTR_IFTYPE, uint32(i.typ))
		ae.Uint32(unix.NL80211_ATTR_GENERATION, generation)
		if i.ssid != "" {
			ae.Bytes(unix.NL80211_ATTR_SSID, []byte(i.ssid))
		}
	})
}

func station0() *rawIface { return &rawIface{index: wlan0, typ: wifi.InterfaceTypeStation} }

// fake is a kernel with nl80211, at the level of messages.
type fake struct {
	mu      sync.Mutex // guards all following fields
	absent  bool       // the family is not there
	noJoin  error
	ifaces  []*rawIface
	fail    map[uint8]error // by command
	torn    map[uint8]int   // how many lists of the command are torn
	bad     map[uint8][]byte
	asked   map[uint8]int
	sockets []*fakeConn
	cqm     []int32
	// answered is done once, when the answer to a command is on its way.
	answered map[uint8]func()
	unknown  map[int]bool // links that the sensor of links does not know
}

func newFake(ifaces ...*rawIface) *fake {
	return &fake{
		ifaces: ifaces, fail: map[uint8]error{}, torn: map[uint8]int{}, bad: map[uint8][]byte{}, asked: map[uint8]int{},
		answered: map[uint8]func(){}, unknown: map[int]bool{},
	}
}

// change changes the kernel's state without a word.
func (f *fake) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fake) count(cmd uint8) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[cmd]
}

func (f *fake) dial() (conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &fakeConn{fake: f, ch: make(chan received, 4096), closed: make(chan struct{})}
	f.sockets = append(f.sockets, c)
	return c, nil
}

// send gives a message to all who listen to nl80211.
func (f *fake) send(cmd uint8, encode func(ae *netlink.AttributeEncoder)) {
	f.deliver(false, received{msg: genetlink.Message{Header: genetlink.Header{Command: cmd}, Data: attrs(encode)}})
}

func (f *fake) deliver(controller bool, r received) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.sockets {
		if c.joined && c.controller == controller {
			select {
			case c.ch <- r:
			default:
				panic("the fake socket is full")
			}
		}
	}
}

func on0(ae *netlink.AttributeEncoder) { ae.Uint32(unix.NL80211_ATTR_IFINDEX, wlan0) }

func (f *fake) disconnect(reason uint16, byAP bool) {
	f.send(unix.NL80211_CMD_DISCONNECT, func(ae *netlink.AttributeEncoder) {
		on0(ae)
		ae.Uint16(unix.NL80211_ATTR_REASON_CODE, reason)
		ae.Flag(unix.NL80211_ATTR_DISCONNECTED_BY_AP, byAP)
	})
}

func (f *fake) beaconLoss() {
	f.send(unix.NL80211_CMD_NOTIFY_CQM, func(ae *netlink.AttributeEncoder) {
		on0(ae)
		ae.Nested(unix.NL80211_ATTR_CQM, func(ae *netlink.AttributeEncoder) error {
			ae.Flag(unix.NL80211_ATTR_CQM_BEACON_LOSS_EVENT, true)
			return nil
		})
	})
}

type received struct {
	msg genetlink.Message
	err error
}

type fakeConn struct {
	*fake
	ch                 chan received
	closed             chan struct{}
	once               sync.Once
	joined, controller bool
}

func (c *fakeConn) GetFamily(string) (genetlink.Family, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.absent {
		return genetlink.Family{}, &netlink.OpError{Op: "receive", Err: unix.ENOENT}
	}
	f := genetlink.Family{ID: 28, Version: 1, Name: familyName}
	for n, g := range append([]string{"vendor"}, groups...) {
		f.Groups = append(f.Groups, genetlink.MulticastGroup{ID: uint32(100 + n), Name: g})
	}
	return f, nil
}

func (c *fakeConn) JoinGroup(group uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.controller = group == unix.GENL_ID_CTRL
	if c.noJoin != nil && !c.controller {
		return c.noJoin
	}
	c.joined = true
	return nil
}

func (c *fakeConn) SetReadBuffer(int) error         { return nil }
func (c *fakeConn) SetReadDeadline(time.Time) error { return nil }

func (c *fakeConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sockets = slices.DeleteFunc(c.sockets, func(o *fakeConn) bool { return o == c })
	})
	return nil
}

func (c *fakeConn) Receive() ([]genetlink.Message, []netlink.Message, error) {
	select {
	case r := <-c.ch:
		if r.err != nil {
			return nil, nil, r.err
		}
		return []genetlink.Message{r.msg}, nil, nil
	case <-c.closed:
		return nil, nil, os.ErrClosed
	}
}

// question is what a request names.
type question struct {
	index int
	peer  []byte
	cqm   []byte
}

func ask(data []byte) (q question) {
	_ = attributes(data, func(ad *netlink.AttributeDecoder) error {
		switch ad.Type() {
		case unix.NL80211_ATTR_IFINDEX:
			q.index = int(ad.Uint32())
		case unix.NL80211_ATTR_MAC:
			q.peer = ad.Bytes()
		case unix.NL80211_ATTR_CQM:
			return nested(ad, func(ad *netlink.AttributeDecoder) error {
				if ad.Type() == unix.NL80211_ATTR_CQM_RSSI_THOLD {
					q.cqm = ad.Bytes()
				}
				return nil
			})
		}
		return nil
	})
	return q
}

func (c *fakeConn) Execute(m genetlink.Message, _ uint16, flags netlink.HeaderFlags) ([]genetlink.Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cmd := m.Header.Command
	c.asked[cmd]++
	if err := c.fail[cmd]; err != nil {
		return nil, &netlink.OpError{Op: "receive", Err: err}
	}
	q := ask(m.Data)
	var list [][]byte
	generation := func() uint32 {
		if c.torn[cmd] > 0 {
			return uint32(len(list))
		}
		return 7
	}
	dump := flags&netlink.Dump == netlink.Dump
	for _, i := range c.ifaces {
		if q.index != 0 && i.index != q.index {
			continue
		}
		switch cmd {
		case unix.NL80211_CMD_GET_INTERFACE:
			list = append(list, i.encode(generation()+uint32(i.wiphy)))
		case unix.NL80211_CMD_GET_STATION:
			for n := range i.stations {
				s := &i.stations[n]
				if (dump && !s.quiet) || (!dump && bytes.Equal(q.peer, mac(s.mac))) {
					list = append(list, s.encode(generation()))
				}
			}
		case unix.NL80211_CMD_GET_SCAN:
			for n := range i.bss {
				list = append(list, i.bss[n].encode(generation()))
			}
		case unix.NL80211_CMD_GET_SURVEY:
			list = append(list, i.nextSurvey()...)
		case unix.NL80211_CMD_SET_CQM:
			c.cqm = append(c.cqm, int32(netlink.NewAttributeEncoder().ByteOrder.Uint32(q.cqm)))
		}
	}
	if dump && c.torn[cmd] > 0 && len(list) > 1 {
		c.torn[cmd]--
	}
	if !dump && len(list) == 0 && cmd != unix.NL80211_CMD_SET_CQM {
		err := unix.ENOENT
		if cmd == unix.NL80211_CMD_GET_INTERFACE {
			err = unix.ENODEV
		}
		return nil, &netlink.OpError{Op: "receive", Err: err}
	}
	if bad := c.bad[cmd]; bad != nil {
		list = append(list, bad)
	}
	if f := c.answered[cmd]; f != nil {
		delete(c.answered, cmd)
		c.mu.Unlock()
		f()
		c.mu.Lock()
	}
	out := make([]genetlink.Message, len(list))
	for n := range list {
		out[n].Data = list[n]
	}
	return out, nil
}

func (i *rawIface) nextSurvey() [][]byte {
	if len(i.survey) == 0 {
		return nil
	}
	now := i.survey[0]
	if len(i.survey) > 1 {
		i.survey = i.survey[1:]
	}
	one := func(inUse bool, active, busy uint64) []byte {
		return attrs(func(ae *netlink.AttributeEncoder) {
			ae.Nested(unix.NL80211_ATTR_SURVEY_INFO, func(ae *netlink.AttributeEncoder) error {
				ae.Flag(unix.NL80211_SURVEY_INFO_IN_USE, inUse)
				ae.Uint64(unix.NL80211_SURVEY_INFO_TIME, active)
				ae.Uint64(unix.NL80211_SURVEY_INFO_TIME_BUSY, busy)
				return nil
			})
		})
	}
	return [][]byte{one(false, 1, 1), one(true, now[0], now[1])}
}

// options are those of a test, in whose bubble time is the clock.
func (f *fake) options() Options {
	return Options{
		Clock: clock.Process(), Suspended: func() time.Duration { return 0 },
		Link: func(index int) (mihf.LinkID, bool) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return link0, index == wlan0 && !f.unknown[index]
		},
	}
}

func (f *fake) sensor(opt Options) *Sensor {
	s := New(opt)
	s.dial = f.dial
	s.own = func(int) mihf.LinkID { return link0 }
	return s
}
