package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mihf.dev/clients"
	"mihf.dev/mihf"
)

// recorder is a daemon that gives its state and then err, or what it sees.
type recorder struct {
	clients.Client
	err  error
	sees int
}

func (r recorder) Snapshot(context.Context) (*mihf.Snapshot, error) {
	return &mihf.Snapshot{At: 1, Egress: []mihf.Egress{{Link: "wifi-00000001"}}}, nil
}

func (r recorder) Record(_ context.Context, write func(*mihf.Observation) error) (uint64, error) {
	for range r.sees {
		if err := write(&mihf.Observation{At: 2, Kind: mihf.ObsResync}); err != nil {
			return 0, err
		}
	}
	return 0, r.err
}

// A daemon that refuses leaves the file as it was, or not there; one that agrees and sees
// nothing gives its state.
func TestRecordRefused(t *testing.T) {
	refusal := fmt.Errorf("%w: not yours", mihf.ErrPermission)
	for _, tc := range []struct {
		name   string
		before string // "": no file
		daemon recorder
		lines  int // 0: as before
	}{
		{"refused", "", recorder{err: refusal}, 0},
		{"refused", "precious", recorder{err: refusal}, 0},
		{"refused.gz", "precious", recorder{err: refusal}, 0},
		{"idle", "precious", recorder{}, 2},
		{"busy", "", recorder{sees: 3}, 5},
		{"broken off", "precious", recorder{sees: 1, err: mihf.ErrClosed}, 3},
	} {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), tc.name)
		if tc.before != "" {
			if err := os.WriteFile(name, []byte(tc.before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		a := &app{out: out, timeout: time.Second}
		err = a.record(t.Context(), tc.daemon, name, 0)
		if !errors.Is(err, tc.daemon.err) {
			t.Errorf("%s: error %v, want %v", tc.name, err, tc.daemon.err)
		}
		b, err := os.ReadFile(name)
		switch {
		case tc.lines == 0 && tc.before == "":
			if !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: a file of %q, %v", tc.name, b, err)
			}
		case tc.lines == 0:
			if string(b) != tc.before {
				t.Errorf("%s: the file is %q", tc.name, b)
			}
		case strings.Count(string(b), "\n") != tc.lines:
			t.Errorf("%s: %q, want %d lines", tc.name, b, tc.lines)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What would keep us from writing is said before anything is recorded.
func TestRecordUnwritable(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{dir, filepath.Join(dir, "missing", "x.jsonl"), "/proc/x.jsonl/y"} {
		a := &app{timeout: time.Second}
		if err := a.record(t.Context(), recorder{err: errors.New("asked to record")}, name, 0); err == nil || !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
