package vm

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLoadOrder(t *testing.T) {
	const dep = `kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko kernel/fs/netfs/netfs.ko
kernel/net/9p/9pnet.ko:
kernel/fs/netfs/netfs.ko:
kernel/net/9p/9pnet-virtio.ko: kernel/net/9p/9pnet.ko kernel/virtio/ring.ko
kernel/virtio/ring.ko:
`
	got, err := loadOrder(dep, []string{"9pnet_virtio", "9p", "ring"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"kernel/virtio/ring.ko", "kernel/net/9p/9pnet.ko", "kernel/net/9p/9pnet-virtio.ko",
		"kernel/fs/netfs/netfs.ko", "kernel/fs/9p/9p.ko",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got)", diff)
	}
	if _, err := loadOrder(dep, []string{"9p", "floppy"}); err == nil || !strings.Contains(err.Error(), "floppy") {
		t.Errorf("a module that is not there: %v", err)
	}
}

// What add writes, a reader of the format finds again.
func TestArchive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type file struct{ Name, Content string }
		want := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) file {
			return file{rapid.StringMatching(`[a-z/]{1,20}`).Draw(t, "name"), rapid.String().Draw(t, "content")}
		}), 0, 5).Draw(t, "files")
		var a archive
		for _, f := range want {
			a.add(f.Name, modeFile|0o644, device{}, []byte(f.Content))
		}
		var got []file
		rest := a.end()
		for {
			name, content, behind, err := readEntry(rest)
			if err != nil {
				t.Fatal(err)
			}
			if name == "TRAILER!!!" {
				break
			}
			got, rest = append(got, file{name, content}), behind
		}
		if diff := cmp.Diff(want, got); !slices.Equal(want, got) {
			t.Error("(-want +got)", diff)
		}
	})
}

func TestArchiveDevice(t *testing.T) {
	var a archive
	a.add("dev/console", modeChar|0o600, device{5, 1}, nil)
	const want = "070701" + "00000001" + "00002180" + "00000000" + "00000000" + "00000001" + "00000000" +
		"00000000" + "00000000" + "00000000" + "00000005" + "00000001" + "0000000c" + "00000000" + "dev/console\x00"
	if got := string(a.end()[:len(want)]); got != want {
		t.Errorf("entry\n%q, want\n%q", got, want)
	}
}

// readEntry reads an archive's first entry, by the format's description.
func readEntry(b []byte) (name, content string, rest []byte, err error) {
	const header = 6 + 13*8
	if len(b) < header || string(b[:6]) != "070701" {
		return "", "", nil, fmt.Errorf("no header in %q", b)
	}
	field := func(i int) int {
		n, ferr := strconv.ParseUint(string(b[6+8*i:14+8*i]), 16, 32)
		if ferr != nil {
			err = ferr
		}
		return int(n)
	}
	size, nameSize := field(6), field(11)
	up := func(n int) int { return (n + 3) / 4 * 4 }
	from := up(header + nameSize)
	return string(b[header : header+nameSize-1]), string(b[from : from+size]), b[up(from+size):], err
}

func TestOpenOff(t *testing.T) {
	t.Setenv("MIHF_VM", "off")
	wantUnsupported(t, "MIHF_VM=off")
}

func TestOpenEmptyCache(t *testing.T) {
	t.Setenv("MIHF_VM", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	wantUnsupported(t, "make deps")
}

func wantUnsupported(t *testing.T, reason string) {
	t.Helper()
	_, err := Run(t.Context(), Job{Args: []string{"true"}}, nil)
	if CodeOf(err) != CodeUnsupported || !strings.Contains(err.Error(), reason) {
		t.Errorf("error %v, want ErrUnsupported that names %q", err, reason)
	}
}

func TestResultMissing(t *testing.T) {
	work := t.TempDir()
	console := strings.Repeat("old", consoleTail) + "Kernel panic - not syncing"
	if err := os.WriteFile(consoleFile(work), []byte(console), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := result(work, nil)
	if CodeOf(err) != CodeNoResult || !strings.HasSuffix(err.Error(), "Kernel panic - not syncing") || len(err.Error()) > 2*consoleTail {
		t.Errorf("error %v", err)
	}
}
