package kernel

import "github.com/vishvananda/netlink"

// OpenFilteringFreezer is OpenFreezer as before Linux 6.6.
func OpenFilteringFreezer(device netlink.Link) (*Freezer, error) { return openFreezer(device, false) }
