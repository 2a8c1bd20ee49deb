package busconn

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/godbus/dbus/v5"
)

// ErrNoBus says that a kind of bus is not there.
var ErrNoBus = errors.New("no such bus")

// SystemAddress returns the address of the system bus.
func SystemAddress() (string, error) {
	if a := os.Getenv("DBUS_SYSTEM_BUS_ADDRESS"); a != "" {
		return a, nil
	}
	for _, path := range []string{"/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket"} {
		if isSocket(path) {
			return "unix:path=" + path, nil
		}
	}
	return "", fmt.Errorf("%w: there is no system bus at /run/dbus/system_bus_socket", ErrNoBus)
}

// SessionAddress returns the address of the user's session bus. None is started.
func SessionAddress() (string, error) {
	if a := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); a != "" && a != "autolaunch:" {
		return a, nil
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	}
	if path := filepath.Join(dir, "bus"); isSocket(path) {
		return "unix:path=" + dbus.EscapeBusAddressValue(path), nil
	}
	return "", fmt.Errorf("%w: there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set, and %s/bus is not there", ErrNoBus, dir)
}

func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Type() == os.ModeSocket
}

// sockets returns the names of the sockets of an address, in its order. An abstract one
// begins with "@".
func sockets(address string) ([]string, error) {
	var names []string
	for one := range strings.SplitSeq(address, ";") {
		if one == "" {
			continue
		}
		name, err := socket(one)
		if err != nil {
			return nil, fmt.Errorf("bus address %.80q: %w", one, err)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("bus address %.80q names no socket", address)
	}
	return names, nil
}

func socket(address string) (string, error) {
	pairs, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return "", errors.New("want unix:path=/path or unix:abstract=name")
	}
	for pair := range strings.SplitSeq(pairs, ",") {
		k, v, _ := strings.Cut(pair, "=")
		value, err := dbus.UnescapeBusAddressValue(v)
		if err != nil {
			return "", err
		}
		switch {
		case value == "":
		case k == "path":
			return value, nil
		case k == "abstract":
			return "@" + value, nil
		}
	}
	return "", errors.New("has neither path nor abstract")
}

// Check reports what is wrong with an address.
func Check(address string) error {
	_, err := sockets(address)
	return err
}
