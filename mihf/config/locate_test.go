package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"mihf.dev/mihf/config"
)

// What shows only on the machine is told with the file and the line of its key.
func TestLocate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mihfd.toml")
	if err := os.WriteFile(file, []byte("[nats]\nserver = \"embedded\"\nusers = \"/none\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := config.Locate(file, errors.Join(
		config.At("nats.users", fs.ErrNotExist), config.At("grpc.group", fs.ErrPermission), errors.New("of no key")))
	want := file + ":3: nats.users: file does not exist\n" + file + ": grpc.group: permission denied\n" + file + ": of no key"
	if err == nil || err.Error() != want || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want\n%s", err, want)
	}
	if err := config.Locate(file, config.At("nats.users", fs.ErrExist)); err == nil || err.Error() != file+":3: nats.users: file already exists" {
		t.Error(err)
	}
	if err := config.Locate(file+".gone", config.At("nats.users", fs.ErrExist)); err == nil || err.Error() != file+".gone: nats.users: file already exists" {
		t.Errorf("the file is gone: %v", err)
	}
	if err := errors.Join(config.Locate(file, nil), config.At("nats.users", nil)); err != nil {
		t.Error(err)
	}
}
