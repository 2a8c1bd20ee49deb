package cli

import (
	"fmt"

	"mihf.dev/clients"
	"mihf.dev/clients/mihdbus"
	"mihf.dev/mihf/busconn"
)

// anyBus is how the default is shown: the system's, else the user's own.
const anyBus = "the system's or the session's bus"

func (a *app) dialDBus() (clients.Client, error) {
	address, err := a.where(), error(nil)
	switch address {
	case anyBus:
		address = ""
	case "system":
		address, err = busconn.SystemAddress()
	case "session":
		address, err = busconn.SessionAddress()
	default:
		if err := busconn.Check(address); err != nil {
			return nil, usageError{fmt.Errorf("%w; or system, or session", err)}
		}
	}
	if err != nil {
		return nil, hinted{err, startHints[viaDBus]}
	}
	return mihdbus.Dial(address, mihdbus.Options{})
}
