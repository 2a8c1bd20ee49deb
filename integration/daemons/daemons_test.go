package daemons

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mihf.dev/integration/netns"
)

// outlive is set for a copy of this program that starts a bus, prints its process id and
// then waits to be killed.
const outlive = "MIHF_TEST_OUTLIVE"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEndsWithTheTestProgram(t *testing.T) {
	if os.Getenv(outlive) != "" {
		fmt.Printf("pid %d\n", Bus(t, BusConfig{}).Pid())
		select {} // until it is killed
	}
	Command(t, "dbus-daemon") // skips where there is none
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestEndsWithTheTestProgram$")
	cmd.Env = append(os.Environ(), outlive+"=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "pid ")))
	if err != nil {
		t.Fatalf("the copy printed %q", line)
	}
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(handle)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	// A process's descriptor is readable when it has ended.
	fds := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(patience.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n != 1 || err != nil {
			t.Errorf("the daemon outlives the program that started it (%v)", err)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return
	}
}

func TestEndedBeforeReady(t *testing.T) {
	p, err := begin(exec.CommandContext(t.Context(), "/bin/sh", "-c", "echo one; echo two >&2; exit 3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	<-p.ended
	if got := p.out.text(); got != "one\ntwo\n" && got != "two\none\n" {
		t.Errorf("it printed %q", got)
	}
	p.kill() // is harmless now
	if _, err := begin(exec.CommandContext(t.Context(), "/nonexistent"), nil); err == nil {
		t.Error("starting nothing gave no error")
	}
}

func TestOutputIsBounded(t *testing.T) {
	o := newOutput()
	line := []byte(strings.Repeat("x", 1023) + "\n")
	for range 2 * maxOutput / len(line) {
		if _, err := o.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	_, more := o.wait()
	if _, err := o.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	<-more
	if s := o.text(); len(s) != maxOutput || !strings.HasSuffix(s, "\nlast") {
		t.Errorf("%d bytes are kept, the last are %q", len(s), s[len(s)-10:])
	}
}

// TestFetchedProgram looks for one that is only in the cache, and for one that is nowhere.
func TestFetchedProgram(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("PATH", "")
	root := filepath.Join(cache, "mihf", "daemons", "root")
	if _, err := debian("busctl"); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "make deps") {
		t.Errorf("a program that is nowhere: %v", err)
	}
	var folders []string
	for _, dir := range []string{"lib/x-linux-y", "usr/lib/x-linux-y", "usr/lib/x-linux-y/systemd", "usr/bin"} {
		folders = append(folders, filepath.Join(root, dir))
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(root, "usr", "bin", "busctl")
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := debian("busctl")
	if want := (program{path, strings.Join(folders[:3], ":")}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestUnknownProgram(t *testing.T) {
	if _, err := find("rm"); err == nil || errors.Is(err, ErrUnsupported) {
		t.Errorf("looking for an unknown program: %v", err)
	}
}

// TestAs has the kernel say whom a socket belongs to.
func TestAs(t *testing.T) {
	want := User{UID: 61234, GID: 61235, Groups: []uint32{100, 61236}}
	var fds [2]int
	err := As(t, want, func() error {
		var err error
		fds, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	cred, err := unix.GetsockoptUcred(fds[0], unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		t.Fatal(err)
	}
	if cred.Uid != want.UID || cred.Gid != want.GID {
		t.Errorf("the socket belongs to %+v, want %+v", cred, want)
	}
	failed := errors.New("failed")
	if err := As(t, want, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("the error is %v", err)
	}
	if uid := os.Geteuid(); uid != 0 {
		t.Errorf("the test itself is user %d now", uid)
	}
}

// TestSystemd: what a service of its own sees and writes is not the host's.
func TestSystemd(t *testing.T) {
	ns := netns.New(t)
	s := Systemd(t, SystemdConfig{
		NS: ns, Start: "test.target", Users: []User{{Name: "somebody", UID: somebody, GID: somebody}},
		Units: map[string]string{
			"test.target": "[Unit]\nWants=one.service\n",
			"one.service": "[Service]\nType=oneshot\nRemainAfterExit=yes\nUser=somebody\nRuntimeDirectory=one\nStateDirectory=one\n" +
				"ExecStart=/bin/sh -c 'id -u >/run/one/id; touch /var/lib/one/x; /run/program'\n",
		},
		Programs: map[string]string{"program": "testdata/program"},
	})
	s.Await("one.service", "ActiveState", "active")
	id, err := os.ReadFile(filepath.Join(s.Run, "one", "id"))
	if err != nil || strings.TrimSpace(string(id)) != strconv.Itoa(somebody) {
		t.Errorf("it ran as %q, %v", id, err)
	}
	if _, err := os.Stat("/var/lib/one"); err == nil {
		t.Error("it has written to the host")
	}
	if comm := s.Proc("1", "comm"); comm != "systemd\n" {
		t.Errorf("its process 1 is %q", comm)
	}
}

func TestRemoveCgroup(t *testing.T) {
	var dir string
	t.Run("inside", func(t *testing.T) {
		dir = newCgroup(t)
		if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
			t.Fatal(err)
		}
		p, err := begin(exec.CommandContext(t.Context(), "/bin/sh", "-c", "echo $$ >"+filepath.Join(dir, "a", "b", "cgroup.procs")+"; echo in; exec sleep 3600"), nil)
		if err != nil {
			t.Fatal(err)
		}
		p.await(t, regexp.MustCompile("in\n"))
	})
	if dir == "" {
		t.Skip("no control group, as said")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the control group is still there")
	}
}
