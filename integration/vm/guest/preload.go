package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// libraries are the folders in which the loader finds what programs name.
var libraries = []string{"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib"}

// always are what programs look for beside their libraries; some may not be there.
var always = []string{
	"/etc/ld.so.cache", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/resolv.conf", "/etc/localtime",
	"/etc/machine-id", "/var/lib/dbus/machine-id", "/usr/lib/ssl/openssl.cnf", "/etc/ssl/openssl.cnf", "/lib64/ld-linux-x86-64.so.2",
}

// preload takes a program, by path or by name in PATH, and the libraries that it names, into
// the layer for what is written, which is the guest's memory.
func preload(program string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("take %s into memory: %w", program, err)
	}
	todo, known := append([]string{path}, always...), map[string]bool{}
	for len(todo) > 0 {
		path, todo = todo[0], todo[1:]
		if known[path] {
			continue
		}
		known[path] = true
		names, err := take(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take %s into memory: %w", path, err)
		}
		for _, name := range names {
			todo = append(todo, find(name)...)
		}
	}
	return nil
}

// take takes a file into memory, and the links that lead to it, and returns the libraries that
// it names. The kernel copies what is written to, and a time is enough.
func take(path string) (libraries []string, err error) {
	for {
		now := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, now, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return nil, err
		}
		to, err := os.Readlink(path)
		if err != nil {
			break // no link
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	program, err := elf.Open(path)
	if _, text := errors.AsType[*elf.FormatError](err); text || errors.Is(err, io.EOF) {
		return nil, nil // a script, or settings
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = program.Close() }() // only read
	libraries, err = program.ImportedLibraries()
	if errors.Is(err, elf.ErrNoSymbols) {
		err = nil // it is linked statically
	}
	return libraries, err
}

// find returns where a library is; nothing where the loader knows another place.
func find(name string) []string {
	for _, folder := range libraries {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return []string{path}
		}
	}
	return nil
}
