package daemons

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/integration/netns"
)

// A SystemdConfig says what a systemd of a test's own runs.
type SystemdConfig struct {
	// Units are the texts of its unit files, and of no others, by their names; drop-ins
	// as "x.service.d/y.conf". Targets that units want and that are not here are made.
	Units map[string]string
	// Programs are copied into its /run: from where they lie, by their names there.
	Programs map[string]string
	// Start is the unit that it starts.
	Start string
	// Users are whom it knows beside the users of this host.
	Users []User
	// NS is the network namespace of all that it runs; it is needed.
	NS *netns.NS
}

// A SystemManager is a systemd, process 1 of namespaces of its own: it sees the host's files
// read-only, but for its own empty /etc, /run, /tmp and /var.
type SystemManager struct {
	Daemon
	// Run is where the test finds its /run.
	Run    string
	dir    string
	cgroup string
}

// bootScript makes the rest of the namespaces and starts systemd as their process 1. Its arguments: the
// cgroup, the folder with etc, run and var, the unit to start, systemd and its libraries.
const bootScript = `set -e
echo $$ >"$1/cgroup.procs"
exec unshare --pid --fork --kill-child --cgroup --ipc --uts -- /bin/sh -c '
set -e
for folder in etc run var; do mount --bind "$1/$folder" "/$folder"; done
mount --bind /dev/null /dev/console
mount -t tmpfs tmpfs /tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -o remount,bind,ro /
exec env -i container=test LD_LIBRARY_PATH="$4" SYSTEMD_UNIT_PATH=/run/units "$3" --unit="$2" --show-status=no
' sh "$2" "$3" "$4" "$5"
`

// Systemd starts a systemd that ends, with all that it runs, with the test. It skips the
// test where there is no systemd, or the user may not make the namespaces and a cgroup.
func Systemd(t testing.TB, c SystemdConfig) *SystemManager {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip(fmt.Errorf("%w: namespaces for a systemd need root", ErrUnsupported))
	}
	program := Command(t, "systemd")
	s := &SystemManager{dir: shortDir(t), cgroup: newCgroup(t)}
	s.Run = filepath.Join(s.dir, "run")
	s.write(t, c)
	libraries := ""
	for _, variable := range program.Env {
		if value, ok := strings.CutPrefix(variable, "LD_LIBRARY_PATH="); ok {
			libraries = value
		}
	}
	s.Daemon = Daemon{t: t, enter: func() error { return errors.Join(ownMounts(), c.NS.Enter()) }, command: func() *exec.Cmd {
		return exec.CommandContext(context.Background(), "/bin/sh", "-c", bootScript, "sh", s.cgroup, s.dir, c.Start, program.Path, libraries)
	}, ready: s.booted}
	s.start()
	return s
}

// shortDir makes a folder that ends with the test, and whose path is short enough for
// sockets in it: theirs has at most 107 bytes.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mihf-") //nolint:usetesting // the test's name would make it long
	if err != nil {
		t.Fatal("daemons:", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error("daemons:", err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal("daemons:", err)
	}
	return dir
}

// write makes the folders that systemd sees as /etc, /run and /var.
func (s *SystemManager) write(t testing.TB, c SystemdConfig) {
	t.Helper()
	passwd, group, err := userFiles(c.Users)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"etc/passwd": passwd, "etc/group": group,
		"etc/systemd/system.conf": "[Manager]\nLogTarget=null\nDefaultStandardOutput=null\n",
	}
	for _, name := range []string{"sysinit", "basic", "shutdown"} {
		files["run/units/"+name+".target"] = "[Unit]\nDefaultDependencies=no\n"
	}
	for name, text := range c.Units {
		files["run/units/"+name] = text
	}
	for _, name := range []string{"nsswitch.conf", "ld.so.cache"} {
		text, err := os.ReadFile("/etc/" + name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal("daemons:", err)
		}
		files["etc/"+name] = string(text)
	}
	for name, from := range c.Programs {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal("daemons:", err)
		}
		files["run/"+name] = string(text)
	}
	if err := os.Mkdir(filepath.Join(s.dir, "var"), 0o755); err != nil {
		t.Fatal("daemons:", err)
	}
	for name, text := range files {
		path := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal("daemons:", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal("daemons:", err)
		}
	}
}

// booted waits until systemd answers.
func (s *SystemManager) booted(p *process) {
	s.t.Helper()
	private := filepath.Join(s.Run, "systemd", "private")
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(private); err == nil {
			return
		}
		select {
		case <-p.ended:
			s.t.Fatalf("daemons: no systemd: %s", p.out.text())
		default:
		}
		if time.Now().After(deadline) {
			s.t.Fatal("daemons: systemd does not boot")
		}
	}
}

// pid is the process id of systemd itself, outside its namespaces.
func (s *SystemManager) pid() string {
	s.t.Helper()
	unshare := strconv.Itoa(s.Pid())
	children, err := os.ReadFile(filepath.Join("/proc", unshare, "task", unshare, "children"))
	if err != nil {
		s.t.Fatal("daemons:", err)
	}
	return strings.TrimSpace(string(children))
}

// Control runs systemctl with the arguments, and returns what it prints. It does so inside
// systemd's namespaces: systemd refuses whom it cannot see.
func (s *SystemManager) Control(args ...string) string {
	s.t.Helper()
	tool := Command(s.t, "systemctl", args...)
	enter := []string{"--target", s.pid(), "--pid", "--mount", "--root", "--", tool.Path}
	cmd := exec.CommandContext(s.t.Context(), "nsenter", append(enter, args...)...)
	cmd.Env = tool.Env
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("daemons: systemctl %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Property returns a property of a unit, as systemctl shows it.
func (s *SystemManager) Property(unit, name string) string {
	s.t.Helper()
	return s.Control("show", "--value", "--property="+name, unit)
}

// Await waits until a property of a unit has the value.
func (s *SystemManager) Await(unit, name, want string) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got := s.Property(unit, name)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("daemons: systemd: %s of %s is %q, want %q", name, unit, got, want)
		}
	}
}

// Proc reads a file below /proc of a process, by its id as systemd knows it.
func (s *SystemManager) Proc(pid, name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", s.pid(), "root", "proc", pid, name))
	if err != nil {
		s.t.Fatal("daemons:", err)
	}
	return string(text)
}

// newCgroup makes a control group for a systemd and all that it starts; with the test it
// ends, and what is in it.
func newCgroup(t testing.TB) string {
	t.Helper()
	mounts := []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
	i := slices.IndexFunc(mounts, func(path string) bool {
		var st unix.Statfs_t
		return unix.Statfs(path, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
	})
	if i < 0 {
		t.Skip(fmt.Errorf("%w: no cgroup2 in %v", ErrUnsupported, mounts))
	}
	dir, err := os.MkdirTemp(mounts[i], "mihf-test-") //nolint:usetesting // a cgroup, not a folder
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		t.Skip(fmt.Errorf("%w: a cgroup: %w", ErrUnsupported, err))
	}
	if err != nil {
		t.Fatal("daemons:", err)
	}
	t.Cleanup(func() {
		if err := removeCgroup(dir); err != nil {
			t.Error("daemons:", err)
		}
	})
	return dir
}

// removeCgroup kills what is in a control group and removes it.
func removeCgroup(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0); err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		events, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
		if err != nil {
			return err
		}
		if bytes.Contains(events, []byte("populated 0\n")) {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s still has processes: %s", dir, events)
		}
	}
	var groups []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			groups = append(groups, path)
		}
		return err
	})
	for _, group := range slices.Backward(groups) { // those inside first
		err = errors.Join(err, os.Remove(group))
	}
	return err
}
