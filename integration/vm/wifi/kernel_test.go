package wifi

import (
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"mihf.dev/integration/netns"
	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// A word is what the kernel said of an interface.
type word struct {
	at      mihf.Time
	index   int // of the interface
	command uint8
	low     bool // a CQM level was crossed downwards
}

// mlme is what the kernel says, as the test hears it beside the daemon.
type mlme struct {
	mu    sync.Mutex // guards the following
	words []word
}

// nl80211 opens a socket until the test ends.
func nl80211(t *testing.T) (*genetlink.Conn, genetlink.Family) {
	t.Helper()
	c, err := genetlink.Dial(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // only asked
	f, err := c.GetFamily(unix.NL80211_GENL_NAME)
	if err != nil {
		t.Fatal(err)
	}
	return c, f
}

// listenToKernel notes what the kernel says until the test ends.
func listenToKernel(t *testing.T) *mlme {
	t.Helper()
	c, f := nl80211(t)
	for _, g := range f.Groups {
		if g.Name == unix.NL80211_MULTICAST_GROUP_MLME || g.Name == unix.NL80211_MULTICAST_GROUP_SCAN {
			if err := c.JoinGroup(g.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	k, done := &mlme{}, make(chan struct{})
	t.Cleanup(func() {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // ends the reading
		<-done
	})
	go func() {
		defer close(done)
		for {
			list, _, err := c.Receive()
			if err != nil {
				return
			}
			now := clock.Boot().Now()
			for _, m := range list {
				k.note(now, m)
			}
		}
	}()
	return k
}

func (k *mlme) note(now mihf.Time, m genetlink.Message) {
	w := word{at: now, command: m.Header.Command}
	ad, err := netlink.NewAttributeDecoder(m.Data)
	if err != nil {
		return // the daemon's own test has what is malformed
	}
	for ad.Next() {
		switch ad.Type() {
		case unix.NL80211_ATTR_IFINDEX:
			w.index = int(ad.Uint32())
		case unix.NL80211_ATTR_CQM:
			ad.Nested(func(ad *netlink.AttributeDecoder) error {
				for ad.Next() {
					if ad.Type() == unix.NL80211_ATTR_CQM_RSSI_THRESHOLD_EVENT {
						w.low = ad.Uint32() == unix.NL80211_CQM_RSSI_THRESHOLD_EVENT_LOW
					}
				}
				return nil
			})
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.words = append(k.words, w)
}

// first is the first word of a command on an interface behind a moment that ok accepts; false:
// there was none.
func (k *mlme) first(after mihf.Time, name string, ok func(word) bool) (word, bool) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return word{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.words {
		if w.at >= after && w.index == i.Index && ok(w) {
			return w, true
		}
	}
	return word{}, false
}

// count is how many such words there were.
func (k *mlme) count(after mihf.Time, name string, ok func(word) bool) (n int) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.words {
		if w.at >= after && w.index == i.Index && ok(w) {
			n++
		}
	}
	return n
}

func disconnected(w word) bool { return w.command == unix.NL80211_CMD_DISCONNECT }
func scanned(w word) bool      { return w.command == unix.NL80211_CMD_NEW_SCAN_RESULTS }
func crossed(w word) bool      { return w.command == unix.NL80211_CMD_NOTIFY_CQM && w.low }

// setCQM sets the levels at which the kernel warns, as another program than the daemon.
func (b *bed) setCQM(name string, dBm ...int32) {
	b.t.Helper()
	i, err := net.InterfaceByName(name)
	if err != nil {
		b.t.Fatal(err)
	}
	c, f := nl80211(b.t)
	var levels []byte
	for _, l := range dBm {
		levels = binary.NativeEndian.AppendUint32(levels, uint32(l))
	}
	ae := netlink.NewAttributeEncoder()
	ae.Uint32(unix.NL80211_ATTR_IFINDEX, uint32(i.Index))
	ae.Nested(unix.NL80211_ATTR_CQM, func(ae *netlink.AttributeEncoder) error {
		ae.Bytes(unix.NL80211_ATTR_CQM_RSSI_THOLD, levels)
		ae.Uint32(unix.NL80211_ATTR_CQM_RSSI_HYST, 2)
		return nil
	})
	b.ask(c, f.ID, unix.NL80211_CMD_SET_CQM, ae)
}

func (b *bed) ask(c *genetlink.Conn, family uint16, command uint8, ae *netlink.AttributeEncoder) []genetlink.Message {
	b.t.Helper()
	data, err := ae.Encode()
	if err != nil {
		b.t.Fatal(err)
	}
	list, err := c.Execute(genetlink.Message{Header: genetlink.Header{Command: command, Version: 1}, Data: data},
		family, netlink.Request|netlink.Acknowledge)
	if err != nil {
		b.t.Fatalf("command %d: %v", command, err)
	}
	return list
}

// moveFar puts the access points' radios into a namespace of their own until the test ends, so
// that IP between them and the station goes over the air.
func (b *bed) moveFar() {
	b.t.Helper()
	b.far = netns.New(b.t)
	c, f := nl80211(b.t)
	for _, r := range []medium.Radio{ap1, ap2} {
		ae := netlink.NewAttributeEncoder()
		ae.Uint32(unix.NL80211_ATTR_WIPHY, uint32(r))
		ae.Uint32(unix.NL80211_ATTR_NETNS_FD, uint32(b.far.Handle))
		b.ask(c, f.ID, unix.NL80211_CMD_SET_WIPHY_NETNS, ae)
	}
	// With the end of the namespace the kernel puts radios back; the next test finds them there.
}
