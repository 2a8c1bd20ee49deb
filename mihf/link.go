package mihf

import "net/netip"

// OperState is a link's operational state (RFC 2863, IF_OPER_* of rtnetlink).
type OperState uint8

// Operational states, with the kernel's numbers.
const (
	OperUnknown OperState = iota
	OperNotPresent
	OperDown
	OperLowerLayerDown
	OperTesting
	OperDormant
	OperUp
)

var operNames = [...]string{"unknown", "not-present", "down", "lower-layer-down", "testing", "dormant", "up"}

func (s OperState) String() string { return nameOf(operNames[:], int(s)) }

// ParseOperState is the inverse of [OperState.String].
func ParseOperState(s string) (OperState, bool) {
	i, ok := indexOf(operNames[:], s)
	return OperState(i), ok
}

// Address is an address of a link with the flags that decide whether it can be used.
type Address struct {
	Prefix     netip.Prefix
	Tentative  bool // duplicate address detection is not finished, or has failed
	Deprecated bool // still valid, not for new flows
	Temporary  bool // a privacy address
	LinkLocal  bool // scope link or host
}

// Usable reports whether the address can be the source of traffic that leaves the link.
func (a Address) Usable() bool { return !a.Tentative && !a.LinkLocal && a.Prefix.IsValid() }

// Route is a default route through a link.
type Route struct {
	IPv6    bool
	Gateway netip.Addr // invalid: on-link
	Source  netip.Addr // preferred source; invalid: not given
	Table   uint32
	Metric  uint32
}

// LinkFacts is what the kernel says of a link, complete each time.
type LinkFacts struct {
	Name         string // arbitrary octets
	Index        int    // the live key inside the namespace
	Namespace    string // "" is the daemon's own
	Kind         string // rtnetlink's kind: "veth", "bridge"; "" for hardware
	HardwareAddr string
	MTUBytes     int
	AdminUp      bool // IFF_UP
	Carrier      bool // IFF_LOWER_UP
	Oper         OperState
	Addresses    []Address
	Defaults     []Route // default routes through this link, in the kernel's order
}

// Running reports whether layer 2 can carry traffic: administratively up and
// operationally up, where a driver that does not report (tun, loopback) counts by
// its carrier.
func (f *LinkFacts) Running() bool {
	return f.AdminUp && (f.Oper == OperUp || (f.Oper == OperUnknown && f.Carrier))
}

// HasAddress reports whether a is a usable address of the link.
func (f *LinkFacts) HasAddress(a netip.Addr) bool {
	for _, x := range f.Addresses {
		if x.Usable() && x.Prefix.Addr() == a {
			return true
		}
	}
	return false
}

// Egress is the kernel's choice for traffic to the outside in one address family.
type Egress struct {
	IPv6    bool
	Link    LinkID // "" : no default route
	Gateway netip.Addr
	Source  netip.Addr
	Table   uint32
	Metric  uint32
}

// PeerRoute is the kernel's route to a peer of a registered flow.
type PeerRoute struct {
	Peer    netip.Addr
	Link    LinkID // "" : unreachable
	Source  netip.Addr
	Gateway netip.Addr
}

// AssociationState is a station's state towards its point of attachment.
type AssociationState uint8

// Association states. Authorised (802.1X port open, or no security) is what counts
// as attached.
const (
	AssociationNone AssociationState = iota
	AssociationDisconnected
	AssociationAuthenticating
	AssociationAssociated
	AssociationAuthorised
)

var associationNames = [...]string{"none", "disconnected", "authenticating", "associated", "authorised"}

func (s AssociationState) String() string { return nameOf(associationNames[:], int(s)) }

// ParseAssociationState is the inverse of [AssociationState.String].
func ParseAssociationState(s string) (AssociationState, bool) {
	i, ok := indexOf(associationNames[:], s)
	return AssociationState(i), ok
}

// Association is a change of a link's attachment (802.11 association, cellular
// registration and bearer).
type Association struct {
	State AssociationState
	PoA   PoA
	SSID  []byte     // the ESS; nil where there is none
	Cause DownReason // of a disconnection
	Code  uint32     // reason code of the technology (802.11 reason, MM state reason)
	// Technology is what carries a cellular link: "gsm", "umts", "lte", "5gnr", "lte+5gnr"
	// (non-standalone) or "cdma". "": not known, or the link's type says it.
	Technology string
	// Local says that our own side ended the attachment (the supplicant left:
	// no DISCONNECTED_BY_AP, no beacon loss). It is evidence of a roam.
	Local bool
}

// DownReason says why a link went down, or a path was lost.
type DownReason uint8

// Reasons. The first six are LINK_DN_REASON of 802.21, with its numbers.
const (
	DownExplicitDisconnect DownReason = iota
	DownPacketTimeout
	DownNoResource
	DownNoBroadcast
	DownAuthenticationFailure
	DownBillingFailure
	DownCarrier    // the kernel reported loss of carrier
	DownAdmin      // set down by the operator
	DownRemoved    // the device is gone
	DownMoved      // moved to another network namespace
	DownBeaconLoss // the point of attachment is not heard any more
	DownNoAddress  // (path) no usable source address
	DownNoRoute    // (path) no route through the link
	DownLink       // (path) the link is down
	DownUnknown
)

var downReasonNames = [...]string{
	"explicit_disconnect", "packet_timeout", "no_resource", "no_broadcast", "authentication_failure",
	"billing_failure", "carrier", "admin", "removed", "moved_netns", "beacon_loss", "no_address", "no_route", "link_down", "unknown",
}

func (r DownReason) String() string { return nameOf(downReasonNames[:], int(r)) }

// ParseDownReason is the inverse of [DownReason.String].
func ParseDownReason(s string) (DownReason, bool) {
	i, ok := indexOf(downReasonNames[:], s)
	return DownReason(i), ok
}

// Detected is a point of attachment that was heard (scan result, neighbour cell).
type Detected struct {
	PoA    PoA
	SSID   []byte
	Values Values
}
