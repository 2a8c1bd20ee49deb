package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"mihf.dev/integration/vm/boot"
)

// A mount is one file system of the guest.
type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

const nineP = "trans=virtio,version=9p2000.L,msize=512000"

// First the kernel's own, then the host's files and what lies over them.
var (
	early = []mount{
		{"dev", "/dev", "devtmpfs", 0, ""},
		{"proc", "/proc", "proc", 0, ""},
		{"sysfs", "/sys", "sysfs", 0, ""},
	}
	files = []mount{
		{boot.HostTag, "/host", "9p", unix.MS_RDONLY, "cache=loose," + nineP},
		{boot.ToolsTag, "/tools", "9p", unix.MS_RDONLY, "cache=loose," + nineP},
		{"writes", "/writes", "tmpfs", 0, "size=90%"},
		{"root", "/root", "overlay", 0, "lowerdir=/tools:/host,upperdir=/writes/upper,workdir=/writes/work"},
		{"/dev", "/root/dev", "", unix.MS_MOVE, ""},
		{"/proc", "/root/proc", "", unix.MS_MOVE, ""},
		{"/sys", "/root/sys", "", unix.MS_MOVE, ""},
	}
	// In the new root.
	late = []mount{
		{"run", "/run", "tmpfs", 0, "mode=755"},
		{boot.JobTag, boot.JobDir, "9p", 0, nineP},
		{"devpts", "/dev/pts", "devpts", 0, ""},
		{"shm", "/dev/shm", "tmpfs", 0, ""},
		{"cgroup", "/sys/fs/cgroup", "cgroup2", 0, ""},
		{"bpf", "/sys/fs/bpf", "bpf", 0, ""},
	}
)

// mountRoot makes the host's files, under those that were fetched and under a layer for what
// is written, the root of this process and of all that it starts.
func mountRoot() error {
	if err := mountAll(early); err != nil {
		return err
	}
	if err := loadModules(); err != nil {
		return err
	}
	for _, file := range files {
		if file.target == "/root" {
			if err := errors.Join(os.Mkdir("/writes/upper", 0o755), os.Mkdir("/writes/work", 0o755)); err != nil {
				return fmt.Errorf("the layer for what is written: %w", err)
			}
		}
		if err := mountAll([]mount{file}); err != nil {
			return err
		}
	}
	if err := os.Chdir("/root"); err != nil {
		return fmt.Errorf("the new root: %w", err)
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the new root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("enter the new root: %w", err)
	}
	if err := mountAll(late); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte("guest")); err != nil {
		return fmt.Errorf("the host name: %w", err)
	}
	if err := os.CopyFS(boot.Programs, os.DirFS(filepath.Join(boot.JobDir, boot.Bin))); err != nil {
		return fmt.Errorf("the programs: %w", err)
	}
	return loopbackUp()
}

func mountAll(mounts []mount) error {
	for _, m := range mounts {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s (%s): %w", m.target, m.kind, err)
		}
	}
	return nil
}

// loadModules loads those of the initial file system, in the order of their names.
func loadModules() error {
	names, err := filepath.Glob(filepath.Join(boot.Modules, "*"))
	if err != nil {
		return fmt.Errorf("the modules: %w", err)
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("load a module: %w", err)
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("load %s: %w", name, err)
		}
	}
	return nil
}

func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("a socket for the loopback: %w", err)
	}
	defer func() { _ = unix.Close(s) }() // nothing was written
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("the loopback: %w", err)
	}
	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("set the loopback up: %w", err)
	}
	return nil
}

// openPort opens what takes the program's output. It stays a blocking file: what was written
// has been taken by the host.
func openPort() (*os.File, error) {
	ports, err := filepath.Glob("/sys/class/virtio-ports/*")
	if err != nil {
		return nil, fmt.Errorf("the output's port: %w", err)
	}
	i := slices.IndexFunc(ports, func(port string) bool {
		name, err := os.ReadFile(filepath.Join(port, "name"))
		return err == nil && strings.TrimSpace(string(name)) == boot.Port
	})
	if i < 0 {
		return nil, fmt.Errorf("the output's port is none of %q", ports)
	}
	path := "/dev/" + filepath.Base(ports[i])
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}
