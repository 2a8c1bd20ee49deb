package dccpnet

import (
	"fmt"
	"net/netip"
)

// Addr is an end of a connection: the address, with the port of what carries DCCP where
// that has its own, and DCCP's port.
type Addr struct {
	Kind string // of the carrier
	Host netip.AddrPort
	Port uint16
}

// Network names the carrier.
func (a Addr) Network() string { return a.Kind }

// String shows the DCCP port behind a slash: "192.0.2.1:6511/5001".
func (a Addr) String() string {
	if a.Host.Port() == 0 {
		return fmt.Sprintf("%v/%d", a.Host.Addr(), a.Port)
	}
	return fmt.Sprintf("%v/%d", a.Host, a.Port)
}
