package dbusapi

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
)

// Names on the bus.
const (
	Name = "dev.mihf.MIHF1" // that the broker owns

	Root     = dbus.ObjectPath("/dev/mihf/MIHF1") // the broker; its ObjectManager has the others
	LinkTree = Root + "/Link"
	FlowTree = Root + "/Flow"

	BrokerInterface = Name + ".Broker" // at Root
	LinkInterface   = Name + ".Link"   // at each link
	FlowInterface   = Name + ".Flow"   // at each flow
)

// LinkPath returns the path of a link's object.
func LinkPath(id mihf.LinkID) dbus.ObjectPath {
	return LinkTree + "/" + dbus.ObjectPath(Escape(string(id)))
}

// FlowPath returns the path of a flow's object.
func FlowPath(id mihf.FlowID) dbus.ObjectPath {
	return FlowTree + "/" + dbus.ObjectPath(Escape(string(id)))
}

// ParseLinkPath is the inverse of [LinkPath].
func ParseLinkPath(p dbus.ObjectPath) (mihf.LinkID, bool) {
	id, ok := under(LinkTree, p)
	return mihf.LinkID(id), ok
}

// ParseFlowPath is the inverse of [FlowPath].
func ParseFlowPath(p dbus.ObjectPath) (mihf.FlowID, bool) {
	id, ok := under(FlowTree, p)
	return mihf.FlowID(id), ok
}

func under(tree, p dbus.ObjectPath) (string, bool) {
	label, ok := strings.CutPrefix(string(p), string(tree)+"/")
	if !ok {
		return "", false
	}
	return Unescape(label)
}

// Escape returns s as one element of an object path: every octet outside A-Z, a-z and 0-9
// becomes _xx, in hexadecimal, and nothing becomes "_".
func Escape(s string) string {
	if s == "" {
		return "_"
	}
	var b strings.Builder
	for i := range len(s) {
		if plain(s[i]) {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, "_%02x", s[i])
		}
	}
	return b.String()
}

// Unescape is the inverse of [Escape]. It takes nothing that Escape does not give.
func Unescape(label string) (string, bool) {
	if label == "_" {
		return "", true
	}
	var b strings.Builder
	for i := 0; i < len(label); i++ {
		c := label[i]
		if c == '_' {
			if i+3 > len(label) {
				return "", false
			}
			n, err := strconv.ParseUint(label[i+1:i+3], 16, 8)
			if err != nil || plain(byte(n)) || strings.ToLower(label[i+1:i+3]) != label[i+1:i+3] {
				return "", false
			}
			c, i = byte(n), i+2
		} else if !plain(c) {
			return "", false
		}
		b.WriteByte(c)
	}
	return b.String(), label != ""
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
