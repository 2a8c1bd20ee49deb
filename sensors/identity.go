package sensors

import "mihf.dev/mihf"

// LinkKey is what a link is known by as long as its hardware is the same: the permanent
// address, else kind and current address, else the device's path. A virtual link with
// neither has only its name.
type LinkKey struct {
	Permanent string // hardware address, lower case with colons; "": none
	Address   string // the current one
	Kind      string // rtnetlink's; "" for hardware
	Path      string // of the device; "": none
	Name      string
}

// String returns the stored key.
func (k LinkKey) String() string {
	switch {
	case k.Permanent != "":
		return k.Permanent
	case k.Address != "" && k.Kind == "":
		return k.Address
	case k.Address != "":
		return k.Kind + "/" + k.Address
	case k.Path != "":
		return k.Path
	default:
		return k.Kind + "/" + k.Name
	}
}

// LinkID returns the id of the link that a key names in a network namespace, "" being
// the daemon's own.
func LinkID(t mihf.LinkType, key, namespace string) mihf.LinkID {
	if namespace != "" {
		key += "@" + namespace
	}
	return mihf.NewLinkID(t, key)
}
