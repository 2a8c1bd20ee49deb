package daemons

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// ErrUnsupported says that this machine or user cannot do what a test wants.
var ErrUnsupported = errors.New("unsupported here")

// Command returns a program with its arguments, not yet started: "nats-server" and "nats"
// in the versions of .tools; "dbus-daemon", "busctl", "systemd", "systemctl", "ModemManager" and "NetworkManager" of the
// host or of the cache. It
// skips the test where the program cannot be had.
func Command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	found, err := find(name)
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), found.path, args...)
	if found.libraries != "" {
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+found.libraries)
	}
	return cmd
}

// InPath lets what the test runs find a program of Debian's by PATH, for as long as the test
// runs. The error wraps ErrUnsupported where the program cannot be had: a reason to skip.
func InPath(t *testing.T, name string) error {
	t.Helper()
	found, err := find(name)
	if errors.Is(err, ErrUnsupported) {
		return err
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(found.path)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if found.libraries != "" {
		t.Setenv("LD_LIBRARY_PATH", found.libraries)
	}
	return nil
}

// A program is where one lies and what its loader has to know.
type program struct {
	path      string
	libraries string // "": the host's
}

// programs are looked for once, by name.
var programs = map[string]func() (program, error){
	"ModemManager":   sync.OnceValues(func() (program, error) { return debian("ModemManager") }),
	"NetworkManager": sync.OnceValues(func() (program, error) { return debian("NetworkManager") }),

	"dbus-daemon": sync.OnceValues(func() (program, error) { return debian("dbus-daemon") }),
	"systemd":     sync.OnceValues(func() (program, error) { return debian("systemd") }),
	"systemctl":   sync.OnceValues(func() (program, error) { return debian("systemctl") }),
	"busctl":      sync.OnceValues(func() (program, error) { return debian("busctl") }),
	"nats-server": sync.OnceValues(func() (program, error) { return built("nats-server") }),
	"nats":        sync.OnceValues(func() (program, error) { return built("nats") }),
}

func find(name string) (program, error) {
	look, ok := programs[name]
	if !ok {
		return program{}, fmt.Errorf("daemons: no program %q", name)
	}
	return look()
}

// built builds a tool into Go's build cache, which makes parallel tests share it.
func built(name string) (program, error) {
	root, err := moduleRoot()
	if err != nil {
		return program{}, err
	}
	// With -n "go tool" builds the tool and prints where it lies.
	cmd := exec.CommandContext(context.Background(), "go", "tool", "-modfile=.tools/"+name+"/go.mod", "-n", name)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		return program{}, fmt.Errorf("daemons: build %s: %w", name, err)
	}
	return program{path: strings.TrimSpace(string(out))}, nil
}

// moduleRoot is the folder with go.mod, from that of the package under test upwards.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("daemons: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("daemons: no go.mod above the working directory")
		}
		dir = parent
	}
}

// debian finds a program of the host, else in the cache that .ci/daemons fills.
func debian(name string) (program, error) {
	if path, err := exec.LookPath(name); err == nil {
		return program{path: path}, nil
	}
	for _, folder := range []string{"/usr/sbin", "/sbin"} { // not in every user's PATH
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return program{path: path}, nil
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return program{}, fmt.Errorf("daemons: %w", err)
	}
	root := filepath.Join(cache, "mihf", "daemons", "root")
	for _, folder := range []string{"usr/bin", "bin", "usr/sbin", "usr/lib/systemd", "lib/systemd"} {
		path := filepath.Join(root, folder, name)
		if _, err := os.Stat(path); err == nil {
			libraries, err := libraryFolders(root)
			return program{path: path, libraries: libraries}, err
		}
	}
	return program{}, fmt.Errorf("%w: %s is neither in PATH nor in %s; on Debian \"make deps\" fetches it", ErrUnsupported, name, root)
}

// libraryFolders lists the folders below root with shared libraries, for the loader.
func libraryFolders(root string) (string, error) {
	var folders []string
	for _, pattern := range []string{"lib/*-linux-*", "usr/lib/*-linux-*", "usr/lib/*-linux-*/systemd"} {
		match, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return "", fmt.Errorf("daemons: %w", err)
		}
		folders = append(folders, match...)
	}
	return strings.Join(folders, ":"), nil
}
