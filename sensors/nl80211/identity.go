package nl80211

import (
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
)

// ownID makes the id of a link by the rules that all sensors share; "" where the link is
// not there.
func ownID(ns netns.NsHandle, namespace string, index int) mihf.LinkID {
	if ns <= 0 {
		ns = netns.None()
	}
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return ""
	}
	defer h.Close()
	l, err := h.LinkByIndex(index)
	if err != nil {
		return ""
	}
	a := l.Attrs()
	return sensors.LinkID(mihf.LinkWiFi, sensors.LinkKey{
		Permanent: zeroless(a.PermHWAddr.String()), Address: zeroless(a.HardwareAddr.String()), Name: a.Name,
	}.String(), namespace)
}

// zeroless returns "" for the address of a link that has none.
func zeroless(addr string) string {
	if addr == "00:00:00:00:00:00" {
		return ""
	}
	return addr
}
