package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A log that is opened again keeps what is in it, and what its first user goes on writing.
func TestOpenLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "live.log")
	open := func() *os.File {
		f, err := openLog(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	write := func(f *os.File, s string) {
		if _, err := f.WriteString(s); err != nil {
			t.Fatal(err)
		}
	}
	first := open()
	write(first, "one\n")
	write(open(), "two\n")
	write(first, "three\n")
	if b, err := os.ReadFile(path); err != nil || string(b) != "one\ntwo\nthree\n" {
		t.Errorf("the log is %q, error %v", b, err)
	}
	if err := os.Truncate(path, maxLog); err != nil {
		t.Fatal(err)
	}
	write(open(), "anew\n")
	write(first, "four\n")
	if b, err := os.ReadFile(path + ".old"); err != nil || len(b) != maxLog+len("four\n") || string(b[:4]) != "one\n" {
		t.Errorf("%d octets are left of the log before, error %v", len(b), err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "anew\n" {
		t.Errorf("a log of %d octets was not begun anew; error %v", len(b), err)
	}
}
