package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mihf.dev/mihf/config"
)

// unit reads a unit file: the values of each key, by "Section.Key".
func unit(t *testing.T, path string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	values, section := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		case ok:
			values[section+"."+key] = append(values[section+"."+key], value)
		default:
			t.Errorf("%s: line %q", path, line)
		}
	}
	return values
}

func TestUnit(t *testing.T) {
	got := unit(t, "packaging/mihfd.service")
	for key, want := range map[string]string{
		"Service.Type":                     "notify",
		"Service.User":                     "mihf",
		"Service.Group":                    "mihf",
		"Service.StateDirectory":           "mihf",
		"Service.RuntimeDirectory":         "mihf",
		"Service.ConfigurationDirectory":   "mihf",
		"Service.WatchdogSec":              "10s",
		"Service.Restart":                  "on-failure",
		"Service.RestartPreventExitStatus": strconv.Itoa(exitUsage),
		"Service.ExecReload":               "/bin/kill -HUP $MAINPID",
		"Service.RestrictAddressFamilies":  "AF_UNIX AF_INET AF_INET6 AF_NETLINK",
		"Service.CapabilityBoundingSet":    "",
		"Service.AmbientCapabilities":      "",
		"Service.NoNewPrivileges":          "yes",
		"Service.ProtectSystem":            "strict",
		"Service.MemoryDenyWriteExecute":   "yes",
		"Install.WantedBy":                 "multi-user.target",
	} {
		if len(got[key]) != 1 || got[key][0] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if exec := got["Service.ExecStart"]; len(exec) != 1 || !strings.HasPrefix(exec[0], "/usr/bin/mihfd") {
		t.Errorf("ExecStart %q", exec)
	}
}

// TestUnitHasTheDefaultPaths: what systemd tells the service leads to the paths that
// clients and people expect.
func TestUnitHasTheDefaultPaths(t *testing.T) {
	s := unit(t, "packaging/mihfd.service")
	env := map[string]string{}
	for key, base := range map[string]string{"StateDirectory": "/var/lib/", "RuntimeDirectory": "/run/", "ConfigurationDirectory": "/etc/"} {
		env[map[string]string{
			"StateDirectory": "STATE_DIRECTORY", "RuntimeDirectory": "RUNTIME_DIRECTORY", "ConfigurationDirectory": "CONFIGURATION_DIRECTORY",
		}[key]] = base + s["Service."+key][0]
	}
	never := func(string) bool { return false }
	service := config.FindPaths(func(k string) string { return env[k] }, 990, never)
	if root := config.FindPaths(func(string) string { return "" }, 0, never); service != root {
		t.Errorf("service %+v, root %+v", service, root)
	}
}

func TestSysusersAndTmpfiles(t *testing.T) {
	for path, want := range map[string][]string{
		"packaging/sysusers.conf": {`u mihf - "Mobility event broker" /var/lib/mihf /usr/sbin/nologin`},
		"packaging/tmpfiles.conf": {"d /run/mihf 0755 mihf mihf -", "d /var/lib/mihf 0750 mihf mihf -", "d /etc/mihf 0755 root root -"},
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(text)) {
			if line = strings.Join(strings.Fields(line), " "); line != "" && line[0] != '#' {
				got = append(got, line)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", path, got, want)
		}
	}
}
