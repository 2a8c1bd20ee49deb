package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"mihf.dev/transports/tcpadjust/kernel"
)

// Journal says what sockets had before they were changed, in a file that outlives a crash.
// With an empty path there is no file, and only an agent that ends puts things back.
type Journal struct {
	path string
	boot string
	had  map[uint64]kernel.Order // by which each socket gets back what it had
}

type journalFile struct {
	Boot    string         `json:"boot"`
	Sockets []kernel.Order `json:"sockets"`
}

// bootID is the kernel's name of this run of itself: cookies mean nothing in another.
const bootID = "/proc/sys/kernel/random/boot_id"

// OpenJournal reads what a run before has left. What is of another boot, or can't be read,
// is left out; the latter with an error, beside the usable journal.
func OpenJournal(path string) (*Journal, error) {
	boot, err := os.ReadFile(bootID)
	if err != nil {
		return nil, fmt.Errorf("read the kernel's boot id: %w", err)
	}
	j := &Journal{path: path, boot: strings.TrimSpace(string(boot)), had: map[uint64]kernel.Order{}}
	if path == "" {
		return j, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	var f journalFile
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err != nil {
		return j, fmt.Errorf("journal %s: %w; sockets changed by a run before keep what it set", path, err)
	}
	if f.Boot == j.boot {
		for _, o := range f.Sockets {
			j.had[o.Cookie] = o
		}
	}
	return j, nil
}

// Changing notes what sockets have, before the first change of each.
func (j *Journal) Changing(sockets []kernel.Socket) error {
	for i := range sockets {
		s := &sockets[i]
		if _, ok := j.had[s.Cookie]; !ok {
			j.had[s.Cookie] = kernel.Order{Cookie: s.Cookie, Clamp: min(s.Clamp, 1<<31-1), Ssthresh: s.Ssthresh, PacingBPS: s.PacingBPS}
		}
	}
	return j.write()
}

// Restore returns the orders that put all back, and forgets them when they are done.
func (j *Journal) Restore() []kernel.Order {
	out := make([]kernel.Order, 0, len(j.had))
	for _, o := range j.had {
		out = append(out, o)
	}
	return out
}

// Forget takes out what was put back.
func (j *Journal) Forget(cookies ...uint64) error {
	for _, c := range cookies {
		delete(j.had, c)
	}
	return j.write()
}

// keep forgets the sockets that are not there any more.
func (j *Journal) keep(there map[uint64]bool) error {
	before := len(j.had)
	maps.DeleteFunc(j.had, func(cookie uint64, _ kernel.Order) bool { return !there[cookie] })
	if len(j.had) == before {
		return nil
	}
	return j.write()
}

// Had returns the order that gives a socket back what it had.
func (j *Journal) Had(cookie uint64) (kernel.Order, bool) {
	o, ok := j.had[cookie]
	return o, ok
}

func (j *Journal) write() error {
	if j.path == "" {
		return nil
	}
	b, err := json.Marshal(journalFile{j.boot, j.Restore()})
	if err != nil {
		return fmt.Errorf("journal %s: %w", j.path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(j.path), filepath.Base(j.path)+".*")
	if err != nil {
		return fmt.Errorf("journal %s: %w", j.path, err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), j.path)
	}
	if err != nil {
		return fmt.Errorf("journal %s: %w", j.path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
