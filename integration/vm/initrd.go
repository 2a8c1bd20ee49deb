package vm

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"mihf.dev/integration/vm/boot"
)

// bootModules are what the guest needs to reach the host's files.
var bootModules = []string{"virtio_pci", "9pnet_virtio", "9p", "overlay", "virtio_console"}

// makeInitrd returns the file system that the kernel starts with: init, the modules in the
// order in which it loads them, and the devices that must be there before anything is mounted.
func makeInitrd(c cache, init []byte) ([]byte, error) {
	dep, err := os.ReadFile(filepath.Join(c.modules(), "modules.dep"))
	if err != nil {
		return nil, fmt.Errorf("vm: which module needs which: %w", err)
	}
	files, err := loadOrder(string(dep), bootModules)
	if err != nil {
		return nil, err
	}
	var a archive
	a.add("dev", modeDir|0o755, device{}, nil)
	a.add("dev/console", modeChar|0o600, device{5, 1}, nil)
	a.add("dev/null", modeChar|0o666, device{1, 3}, nil)
	a.add("init", modeFile|0o755, device{}, init)
	folder := strings.TrimPrefix(boot.Modules, "/")
	a.add(folder, modeDir|0o755, device{}, nil)
	for i, file := range files {
		b, err := os.ReadFile(filepath.Join(c.modules(), file))
		if err != nil {
			return nil, fmt.Errorf("vm: a kernel module: %w", err)
		}
		// By name they are in the order in which they are loaded.
		a.add(fmt.Sprintf("%s/%02d-%s", folder, i, path.Base(file)), modeFile|0o644, device{}, b)
	}
	return a.end(), nil
}

// loadOrder lists the files of modules and of all that they need, each behind what it needs.
// dep is the kernel's modules.dep: a line "file: what it needs, the nearest first".
func loadOrder(dep string, names []string) ([]string, error) {
	needs := map[string][]string{}
	for line := range strings.Lines(dep) {
		file, rest, ok := strings.Cut(line, ":")
		if ok {
			name := strings.TrimSuffix(path.Base(file), ".ko")
			needs[strings.ReplaceAll(name, "-", "_")] = append([]string{file}, strings.Fields(rest)...)
		}
	}
	var order []string
	seen := map[string]bool{}
	for _, name := range names {
		files, ok := needs[name]
		if !ok {
			return nil, fmt.Errorf("vm: the kernel has no module %s", name)
		}
		for i := len(files) - 1; i >= 0; i-- {
			if !seen[files[i]] {
				seen[files[i]] = true
				order = append(order, files[i])
			}
		}
	}
	return order, nil
}

// Kinds of file in an archive, as in stat.
const (
	modeFile = 0o100000
	modeDir  = 0o040000
	modeChar = 0o020000
)

// A device is the number of a character device.
type device struct{ major, minor uint32 }

// An archive is a cpio file of the "newc" kind, which the kernel unpacks at its start
// (Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	buf bytes.Buffer
	ino int
}

func (a *archive) add(name string, mode uint32, number device, content []byte) {
	a.ino++
	// magic, ino, mode, uid, gid, nlink, mtime, size, the file's device, its own number,
	// length of the name, checksum
	fmt.Fprintf(&a.buf, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", a.ino, mode,
		0, 0, 1, 0, len(content), 0, 0, number.major, number.minor, len(name)+1, 0)
	a.buf.WriteString(name + "\x00")
	a.pad()
	a.buf.Write(content)
	a.pad()
}

// pad fills up to the next multiple of four.
func (a *archive) pad() {
	for a.buf.Len()%4 != 0 {
		a.buf.WriteByte(0)
	}
}

// end closes the archive and returns it.
func (a *archive) end() []byte {
	a.add("TRAILER!!!", 0, device{}, nil)
	return a.buf.Bytes()
}
