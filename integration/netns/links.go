package netns

import (
	"net"

	"github.com/vishvananda/netlink"
)

// Pair makes a veth pair: name here, peerName in peer. Both ends are down.
func (n *NS) Pair(name string, peer *NS, peerName string) {
	n.t.Helper()
	n.PairWith(name, peer, peerName, "")
}

// PairWith is [NS.Pair] with the hardware address of the end here; "" lets the kernel
// choose.
func (n *NS) PairWith(name string, peer *NS, peerName, mac string) {
	n.t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	attrs.Index = firstIndex + int(nextIndex.Add(1))
	if mac != "" {
		hw, err := net.ParseMAC(mac)
		n.must(err, "hardware address")
		attrs.HardwareAddr = hw
	}
	n.must(n.NL.LinkAdd(&netlink.Veth{
		LinkAttrs: attrs, PeerName: peerName, PeerNamespace: netlink.NsFd(int(peer.Handle)),
	}), "make the pair "+name+", "+peerName)
	if a, b := n.Index(name), peer.Index(peerName); a == b {
		n.t.Fatalf("netns: %s and %s both have ifindex %d", name, peerName, a)
	}
}

// Bridge makes a bridge and brings it up.
func (n *NS) Bridge(name string) {
	n.t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	n.must(n.NL.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}), "make bridge "+name)
	n.Up(name)
}

// Up sets the link administratively up.
func (n *NS) Up(name string) {
	n.t.Helper()
	n.must(n.NL.LinkSetUp(n.Link(name)), "set "+name+" up")
}

// Down sets the link administratively down.
func (n *NS) Down(name string) {
	n.t.Helper()
	n.must(n.NL.LinkSetDown(n.Link(name)), "set "+name+" down")
}

// Rename gives the link another name; since Linux 6.3 it may be up.
func (n *NS) Rename(name, to string) {
	n.t.Helper()
	n.must(n.NL.LinkSetName(n.Link(name), to), "rename "+name+" to "+to)
}

// Delete removes the link.
func (n *NS) Delete(name string) {
	n.t.Helper()
	n.must(n.NL.LinkDel(n.Link(name)), "delete "+name)
}

// Move moves the link into another namespace.
func (n *NS) Move(name string, to *NS) {
	n.t.Helper()
	n.must(n.NL.LinkSetNsFd(n.Link(name), int(to.Handle)), "move "+name)
}

// Enslave makes the link a port of the bridge; with bridge "" it leaves its master.
func (n *NS) Enslave(name, bridge string) {
	n.t.Helper()
	if bridge == "" {
		n.must(n.NL.LinkSetNoMaster(n.Link(name)), "release "+name)
		return
	}
	n.must(n.NL.LinkSetMaster(n.Link(name), n.Link(bridge)), "enslave "+name)
}

// AddAddr adds an address such as "10.0.0.1/24", or changes its lifetimes. IPv6
// addresses start tentative; with lifetimes 0 it is valid for ever.
func (n *NS) AddAddr(name, cidr string, valid, preferred int) {
	n.t.Helper()
	a, err := netlink.ParseAddr(cidr)
	n.must(err, "address")
	a.ValidLft, a.PreferedLft = valid, preferred
	n.must(n.NL.AddrReplace(n.Link(name), a), "add "+cidr)
}

// DelAddr removes an address.
func (n *NS) DelAddr(name, cidr string) {
	n.t.Helper()
	a, err := netlink.ParseAddr(cidr)
	n.must(err, "address")
	n.must(n.NL.AddrDel(n.Link(name), a), "delete "+cidr)
}
