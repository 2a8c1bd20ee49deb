package endtoend

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mihf.dev/clients/mihgrpc"
	"mihf.dev/integration/daemons"
	"mihf.dev/integration/netns"
)

const (
	service   = "mihfd.service"
	serviceID = 61000 // of the user and the group mihf
)

// TestUnitUnderSystemd runs the daemon under a real systemd with the unit file that is
// shipped, sandbox and all (report S01): it gets ready, has no rights, sees the kernel's
// links, answers on its socket; it is reloaded, comes back when it was killed and when it
// hung, and ends in good order.
func TestUnitUnderSystemd(t *testing.T) {
	t.Parallel() // it waits for the watchdog
	unit, err := os.ReadFile(filepath.Join("..", "..", "cmd", "mihfd", "packaging", service))
	if err != nil {
		t.Fatal(err)
	}
	ns := netns.New(t)
	s := daemons.Systemd(t, daemons.SystemdConfig{
		NS: ns, Start: service, Users: []daemons.User{{Name: "mihf", UID: serviceID, GID: serviceID}},
		Units: map[string]string{
			service: string(unit), "network.target": "[Unit]\n", "multi-user.target": "[Unit]\n",
			// The path alone differs: there is no mihfd in /usr/bin.
			service + ".d/path.conf": "[Service]\nExecStart=\nExecStart=/run/mihfd-built\nStandardError=file:/run/mihfd.log\n",
		},
		Programs: map[string]string{"mihfd-built": mihfd},
	})
	t.Cleanup(func() {
		if text, err := os.ReadFile(filepath.Join(s.Run, "mihfd.log")); t.Failed() && err == nil {
			t.Logf("daemon's log:\n%s", text)
		}
	})
	client, err := mihgrpc.Dial("unix://"+filepath.Join(s.Run, "mihf", "mihfd.sock"), mihgrpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	u := unitBed{t, s, client}

	u.active()
	ns.Pair("v0", netns.New(t), "p0")
	u.sandboxed()
	u.sees("v0")

	s.Control("reload", service)
	s.Control("kill", "--signal=KILL", service)
	s.Await(service, "NRestarts", "1")
	u.active()
	s.Control("kill", "--signal=STOP", service) // the watchdog ends it
	s.Await(service, "NRestarts", "2")
	u.active()
	u.sees("v0")

	s.Control("stop", service)
	if state := s.Property(service, "ActiveState"); state != "inactive" {
		t.Errorf("stopped, it is %s", state)
	}
	if result := s.Property(service, "Result"); result != "success" {
		t.Errorf("stopped with %v", result)
	}
}

// unitBed is a daemon under systemd and a client.
type unitBed struct {
	t      *testing.T
	s      *daemons.SystemManager
	client *mihgrpc.Client
}

// active waits until the daemon has told systemd that it is ready.
func (u unitBed) active() { u.t.Helper(); u.s.Await(service, "ActiveState", "active") }

// sandboxed looks at who the daemon is and what it may do.
func (u unitBed) sandboxed() {
	u.t.Helper()
	got := map[string]string{}
	for line := range strings.Lines(u.s.Proc(u.s.Property(service, "MainPID"), "status")) {
		key, value, _ := strings.Cut(line, ":")
		got[key] = strings.Join(strings.Fields(value), " ")
	}
	for key, want := range map[string]string{
		"Uid": "61000 61000 61000 61000", "Gid": "61000 61000 61000 61000",
		"CapEff": "0000000000000000", "CapBnd": "0000000000000000", "CapAmb": "0000000000000000",
		"NoNewPrivs": "1", "Seccomp": "2",
	} {
		if got[key] != want {
			u.t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	info, err := os.Stat(filepath.Join(u.s.Run, "mihf", "mihfd.sock"))
	if err != nil {
		u.t.Fatal(err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode().Perm() != 0o660 || owner.Uid != serviceID || owner.Gid != serviceID {
		u.t.Errorf("the socket: mode %v, owner %+v", info.Mode(), owner)
	}
}

// sees waits until the daemon has a link, which it learns by netlink.
func (u unitBed) sees(link string) {
	u.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		s, err := u.client.Snapshot(u.t.Context())
		if err == nil && named(s, link) != nil {
			return
		}
		if time.Now().After(deadline) {
			u.t.Fatalf("the daemon does not see %s: %v", link, err)
		}
	}
}
