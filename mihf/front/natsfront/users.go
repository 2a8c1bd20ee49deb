package natsfront

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/nats-io/nkeys"
)

// User is one who may connect to the embedded server.
type User struct {
	Name   string // letters, digits, - and _
	Secret string // a password, its bcrypt hash, or a public user nkey
}

// nkey reports whether the user proves who it is by a key.
func (u *User) nkey() bool { return nkeys.IsValidPublicUserKey(u.Secret) }

// Limits of a file of users.
const (
	maxUsers     = 4096
	maxUserName  = 64
	maxUserLine  = 1024
	maxUsersFile = 1 << 20
	secretMode   = fs.FileMode(0o640) // at most
)

// ReadSecretFile reads a file that others than its owner and group may not.
func ReadSecretFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is not waited for
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w for uid %d; chgrp it to that user's group and chmod it to %04o", err, os.Geteuid(), secretMode)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is no regular file", path)
	case info.Mode().Perm()&^secretMode != 0:
		return nil, fmt.Errorf("%s: has mode %04o, which lets others at it; chmod it to %04o or less", path, info.Mode().Perm(), secretMode)
	case info.Size() > maxUsersFile:
		return nil, fmt.Errorf("%s: has %d octets, at most %d", path, info.Size(), maxUsersFile)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b.Bytes(), nil
}

// ReadUsers reads the file of the embedded server's users.
func ReadUsers(path string) ([]User, error) {
	b, err := ReadSecretFile(path)
	if err != nil {
		return nil, err
	}
	users, err := ParseUsers(b)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	return users, nil
}

// ParseUsers reads users, one a line: name:secret. Empty lines, and those that begin with #,
// are passed over.
func ParseUsers(text []byte) ([]User, error) {
	var users []User
	known := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxUserLine)
	n := 0
	for lines.Scan() {
		n++
		line := strings.TrimSuffix(lines.Text(), "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		name, secret, found := strings.Cut(line, ":")
		switch {
		case !found:
			return nil, fmt.Errorf("%d: write name:secret", n)
		case !validName(name):
			return nil, fmt.Errorf("%d: the name %.80q is not 1 to %d letters, digits, - or _", n, name, maxUserName)
		case known[name]:
			return nil, fmt.Errorf("%d: user %s is there twice", n, name)
		case secret == "":
			return nil, fmt.Errorf("%d: user %s has no secret", n, name)
		case len(users) == maxUsers:
			return nil, fmt.Errorf("%d: more than %d users", n, maxUsers)
		}
		known[name] = true
		users = append(users, User{name, secret})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%d: %w", n+1, err)
	}
	if len(users) == 0 {
		return nil, errors.New("1: has no user")
	}
	return users, nil
}

// validName reports whether a name can be a token of a subject as it is.
func validName(name string) bool {
	return name != "" && len(name) <= maxUserName && strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) < 0
}
