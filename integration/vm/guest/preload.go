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
)

// libraries are the folders in which the loader finds what programs name.
var libraries = []string{"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib"}

// preload reads a program, by path or by name in PATH, and the libraries that it names, so
// that they are in the kernel's memory.
func preload(program string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("read %s ahead: %w", program, err)
	}
	todo, known := []string{path}, map[string]bool{}
	for len(todo) > 0 {
		path, todo = todo[0], todo[1:]
		names, err := readThrough(path)
		if err != nil {
			return fmt.Errorf("read %s ahead: %w", path, err)
		}
		for _, name := range names {
			if !known[name] {
				known[name] = true
				todo = append(todo, find(name)...)
			}
		}
	}
	return nil
}

// readThrough reads a file to its end and returns the libraries that it names.
func readThrough(path string) (libraries []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	if _, err := io.Copy(io.Discard, f); err != nil {
		return nil, err
	}
	program, err := elf.NewFile(f)
	if _, text := errors.AsType[*elf.FormatError](err); text {
		return nil, nil // a script
	}
	if err != nil {
		return nil, err
	}
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
