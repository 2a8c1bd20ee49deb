package clients

import (
	"cmp"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// SystemSocket is where the system's broker listens.
const SystemSocket = "/run/mihf/mihfd.sock"

// DefaultAddress returns the address in force where none is given: $MIHF_ADDRESS, else the
// system's socket, else the user's if only that exists.
func DefaultAddress() string {
	return defaultAddress(os.Getenv, os.Getuid(), isSocket)
}

func defaultAddress(env func(string) string, uid int, exists func(string) bool) string {
	if a := env("MIHF_ADDRESS"); a != "" {
		return a
	}
	dir := cmp.Or(env("XDG_RUNTIME_DIR"), "/run/user/"+strconv.Itoa(uid)) // as the daemon looks for it
	if !exists(SystemSocket) {
		if user := filepath.Join(dir, "mihf", "mihfd.sock"); exists(user) {
			return "unix://" + user
		}
	}
	return "unix://" + SystemSocket
}

func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Type() == fs.ModeSocket
}

// ParseAddress splits "unix:///path" or "host:port" into network and address.
func ParseAddress(s string) (network, address string, err error) {
	if path, ok := strings.CutPrefix(s, "unix://"); ok {
		if !filepath.IsAbs(path) {
			return "", "", fmt.Errorf("address %q: want unix:///absolute/path", s)
		}
		return "unix", path, nil
	}
	if path := strings.TrimPrefix(s, "unix:"); filepath.IsAbs(path) {
		return "", "", fmt.Errorf("address %q: want unix://%s", s, path)
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" || port == "" {
		return "", "", fmt.Errorf("address %q: want unix:///path or host:port", s)
	}
	return "tcp", s, nil
}
