package config

import (
	"path/filepath"
	"strconv"
)

// Paths says where things are unless something else is configured.
type Paths struct {
	Config string // the configuration; it need not exist
	State  string // directory of what is kept
	Socket string // of the gRPC front
}

// FindPaths returns the paths for a process. What systemd made for the service comes
// first; else root's are the system's and everybody else's are below their own
// directories (XDG). getenv is os.Getenv; exists says whether a directory is there.
//
// Without XDG_RUNTIME_DIR the socket is in /run/user/<uid> if that is there, else in the
// state directory.
func FindPaths(getenv func(string) string, uid int, exists func(string) bool) Paths {
	xdg := func(variable, below string) string {
		if d := getenv(variable); filepath.IsAbs(d) { // a relative one is invalid (XDG base directory specification)
			return filepath.Join(d, "mihf")
		}
		return filepath.Join("/", getenv("HOME"), below, "mihf")
	}
	p := Paths{Config: "/etc/mihf", State: "/var/lib/mihf", Socket: "/run/mihf"}
	if uid != 0 {
		p.Config = xdg("XDG_CONFIG_HOME", ".config")
		p.State = xdg("XDG_STATE_HOME", ".local/state")
		p.Socket = p.State
		if run := filepath.Join("/run/user", strconv.Itoa(uid)); filepath.IsAbs(getenv("XDG_RUNTIME_DIR")) {
			p.Socket = xdg("XDG_RUNTIME_DIR", "")
		} else if exists(run) {
			p.Socket = filepath.Join(run, "mihf")
		}
	}
	for _, d := range []struct {
		variable string
		path     *string
	}{{"CONFIGURATION_DIRECTORY", &p.Config}, {"STATE_DIRECTORY", &p.State}, {"RUNTIME_DIRECTORY", &p.Socket}} {
		if list := filepath.SplitList(getenv(d.variable)); len(list) > 0 && filepath.IsAbs(list[0]) {
			*d.path = list[0]
		}
	}
	p.Config = filepath.Join(p.Config, "mihfd.toml")
	p.Socket = filepath.Join(p.Socket, "mihfd.sock")
	return p
}
