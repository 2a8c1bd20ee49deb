package natsfront

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nkeys"
)

func TestParseUsers(t *testing.T) {
	got, err := ParseUsers([]byte("# who may\nalice:a:b\r\n\nuid-4_2:$2a$11$abc\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]User{{"alice", "a:b"}, {"uid-4_2", "$2a$11$abc"}}, got); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		"":                "has no user",
		"# none\n":        "has no user",
		"alice\n":         "1: write name:secret",
		"a:x\n\nalice:\n": "3: user alice has no secret",
		"a:x\na:y\n":      "2: user a is there twice",
		"a b:x\n":         `1: the name "a b"`,
		":x\n":            `1: the name ""`,
		"a.b:x\n":         `1: the name "a.b"`,
		"a:" + strings.Repeat("x", 2*maxUserLine): "1: ",
	} {
		if _, err := ParseUsers([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseUsers(f *testing.F) {
	f.Add([]byte("alice:secret\n#\nbob:UABC\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		users, err := ParseUsers(text)
		if err != nil {
			return
		}
		for _, u := range users {
			if !validName(u.Name) || u.Secret == "" {
				t.Errorf("user %+v", u)
			}
		}
	})
}

// A file that others may read or write is refused, and named.
func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "users")
	write := func(mode os.FileMode, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o640: true, 0o400: true, 0o644: false, 0o660: false, 0o604: false, 0o750: false, 0o602: false} {
		write(mode, "a:x\n")
		if _, err := ReadUsers(path); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "chmod") {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	write(0o600, "a\n")
	if _, err := ReadUsers(path); err == nil || !strings.Contains(err.Error(), path+":1: ") {
		t.Errorf("%v does not name file and line", err)
	}
	if _, err := ReadUsers(dir); err == nil {
		t.Error("a directory is read")
	}
	write(0o600, strings.Repeat("#\n", maxUsersFile))
	if _, err := ReadUsers(path); err == nil {
		t.Error("a huge file is read")
	}
}

func TestCredentials(t *testing.T) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := account.Seed()
	if err != nil {
		t.Fatal(err)
	}
	creds := "-----BEGIN NATS USER JWT-----\nx.y.z\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n" + string(seed) + "\n------END USER NKEY SEED------\n"
	path := filepath.Join(t.TempDir(), "c")
	for text, ok := range map[string]bool{
		"user:pass:word\n": true, string(seed) + "\n": true, creds: true,
		"": false, "user\n": false, ":x": false, "a:": false, "a:b\nc:d\n": false, "SUABC": false, string(wrong): false,
		"-----BEGIN NATS USER JWT-----\nx\n------END NATS USER JWT------\n": false,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := ReadCredential(path)
		if (err == nil) != ok {
			t.Errorf("%.30q: %v", text, err)
		}
		if ok && len(c.Options()) != 1 {
			t.Errorf("%.30q: %d options", text, len(c.Options()))
		}
		if err != nil && strings.Contains(err.Error(), string(seed)) {
			t.Errorf("%v shows the seed", err)
		}
	}
	if len((Credential{}).Options()) != 0 {
		t.Error("nothing proves nothing")
	}
}
