package rtnl

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
)

// device is what sysfs adds to what the kernel's messages say of a link.
type device struct {
	wireless bool
	wwan     bool
	path     string // of the hardware; "": none
}

// tunnels are the kinds that carry packets inside packets.
var tunnels = map[string]bool{
	"tun": true, "wireguard": true, "gre": true, "gretap": true, "ip6gre": true, "ip6gretap": true, "erspan": true,
	"ip6erspan": true, "ipip": true, "sit": true, "ip6tnl": true, "vti": true, "vti6": true, "xfrm": true, "vxlan": true,
	"geneve": true, "bareudp": true, "gtp": true, "amt": true, "ovpn": true, "l2tpeth": true,
}

const arphrdEther = 1

// linkType returns the technology of a link.
func linkType(l *linkInfo, d device) mihf.LinkType {
	switch {
	case tunnels[l.kind]:
		return mihf.LinkTunnel
	case d.wireless:
		return mihf.LinkWiFi
	case d.wwan:
		return mihf.LinkWWAN
	case l.hwType == arphrdEther:
		return mihf.LinkEthernet
	default:
		return mihf.LinkOther
	}
}

// linkKey is what a link is known by as long as its hardware is the same.
func linkKey(l *linkInfo, d device) string {
	return sensors.LinkKey{Permanent: l.perm, Address: l.addr, Kind: l.kind, Path: d.path, Name: l.name}.String()
}

// sysfs reads devices below a directory, "/sys/class/net". Empty: there is none that
// belongs to the namespace.
type sysfs string

// device finds the link by its name and makes sure by its ifindex, because it may have
// been renamed since, and the directory may belong to another namespace.
func (s sysfs) device(l *linkInfo) device {
	dir := s.find(l)
	if dir == "" {
		return device{}
	}
	var d device
	devtype := ""
	if uevent, err := os.ReadFile(filepath.Join(dir, "uevent")); err == nil {
		for line := range strings.Lines(string(uevent)) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVTYPE="); ok {
				devtype = v
			}
		}
	}
	d.wwan = devtype == "wwan"
	d.wireless = devtype == "wlan" || exists(filepath.Join(dir, "phy80211")) || exists(filepath.Join(dir, "wireless"))
	if p, err := filepath.EvalSymlinks(filepath.Join(dir, "device")); err == nil {
		d.path = p
	}
	return d
}

func (s sysfs) find(l *linkInfo) string {
	if s == "" {
		return ""
	}
	if l.name != "" && !strings.ContainsRune(l.name, '/') {
		if dir := filepath.Join(string(s), l.name); s.is(dir, l) {
			return dir
		}
	}
	list, err := os.ReadDir(string(s))
	if err != nil {
		return ""
	}
	for _, e := range list {
		if dir := filepath.Join(string(s), e.Name()); s.is(dir, l) {
			return dir
		}
	}
	return ""
}

func (s sysfs) is(dir string, l *linkInfo) bool {
	index, err := os.ReadFile(filepath.Join(dir, "ifindex"))
	if err != nil || strings.TrimSpace(string(index)) != strconv.Itoa(l.index) {
		return false
	}
	addr, err := os.ReadFile(filepath.Join(dir, "address"))
	return err == nil && (l.addr == "" || strings.TrimSpace(string(addr)) == l.addr)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
