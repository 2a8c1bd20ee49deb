package rtnl

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/bpf"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

func TestHintsMerge(t *testing.T) {
	alive, deleted := linkHint{link: true, alive: true}, linkHint{link: true, deleted: true}
	moved := linkHint{link: true, deleted: true, moved: true}
	for _, tc := range []struct {
		name string
		in   []linkHint
		want linkHint
	}{
		{"address after link", []linkHint{alive, {addrs: true}}, linkHint{link: true, alive: true, addrs: true}},
		{"gone and back", []linkHint{deleted, alive}, linkHint{link: true, alive: true, deleted: true}},
		{"back and gone", []linkHint{alive, deleted}, deleted},
		{"moved, back, removed", []linkHint{moved, alive, deleted}, deleted},
		{"moved, then an address", []linkHint{moved, {addrs: true}}, linkHint{link: true, deleted: true, moved: true, addrs: true}},
	} {
		var hs, later hints
		for _, h := range tc.in {
			hs.add(hint{index: 7, linkHint: h})
		}
		later.merge(hs)
		if diff := cmp.Diff(tc.want, later.links[7], cmpAll); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestHintsAreBounded(t *testing.T) {
	var hs hints
	for i := range 10 * maxDirty {
		hs.add(hint{index: i + 1, linkHint: linkHint{link: true}})
	}
	if len(hs.links) > maxDirty || !hs.all {
		t.Errorf("%d links, all %v", len(hs.links), hs.all)
	}
}

func TestPacer(t *testing.T) {
	p := pacer{gap: 10 * time.Millisecond}
	ms := func(n int) mihf.Time { return mihf.Time(time.Second).Add(time.Duration(n) * time.Millisecond) }
	due := func(want int) {
		t.Helper()
		if p.due != ms(want) {
			t.Errorf("due at %v, want %v", p.due, ms(want))
		}
	}
	t.Log("# at once, an earlier wish stands")
	p.want(ms(0), 0)
	p.want(ms(1), 5*time.Millisecond)
	due(0)
	t.Log("# after the gap")
	p.begin()
	p.done(ms(0), ms(1))
	p.want(ms(2), 0)
	due(11)
	t.Log("# four times as long as it took; what was wanted meanwhile waits too")
	p.begin()
	p.want(ms(12), 0)
	p.done(ms(11), ms(61))
	due(261)
	t.Log("# but not beyond a bound")
	p.most = 100 * time.Millisecond
	p.begin()
	p.want(ms(262), 0)
	p.done(ms(261), ms(1261))
	due(1361)
}

// covers against a loop over all addresses.
func TestCovers(t *testing.T) {
	genAddr := rapid.Custom(func(rt *rapid.T) netip.Addr {
		if rapid.Bool().Draw(rt, "v6") {
			return netip.AddrFrom16([16]byte{0x20, 1, 14: rapid.Byte().Draw(rt, "y"), 15: rapid.Byte().Draw(rt, "z")})
		}
		return netip.AddrFrom4([4]byte{10, 0, rapid.Byte().Draw(rt, "y"), rapid.Byte().Draw(rt, "z")})
	})
	rapid.Check(t, func(rt *rapid.T) {
		addrs := rapid.SliceOfN(genAddr, 0, 20).Draw(rt, "peers")
		w, _ := newWatchSet(addrs)
		base := genAddr.Draw(rt, "base")
		p := netip.PrefixFrom(base, rapid.IntRange(0, base.BitLen()).Draw(rt, "bits"))
		want := false
		for _, a := range addrs {
			want = want || p.Contains(a)
		}
		if got := w.covers(p); got != want {
			rt.Fatalf("covers(%v) = %v among %v, want %v", p, got, addrs, want)
		}
	})
}

func TestWatchSetIsBoundedAndClean(t *testing.T) {
	w, left := newWatchSet([]netip.Addr{
		netip.MustParseAddr("::ffff:10.0.0.1"), netip.MustParseAddr("10.0.0.1"), {}, netip.MustParseAddr("fe80::1%eth0"),
	})
	want := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fe80::1")}
	if diff := cmp.Diff(want, w.peers, cmpAll); diff != "" || left != 1 {
		t.Errorf("left out %d; peers (-want +got):\n%s", left, diff)
	}
	many := make([]netip.Addr, MaxPeers+10)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
	}
	if w, left := newWatchSet(many); len(w.peers) != MaxPeers || left != 10 {
		t.Errorf("%d peers, %d left out", len(w.peers), left)
	}
}

// The kernel takes at most 4096 instructions, and charges them to the socket.
func TestFilterFits(t *testing.T) {
	for _, peers := range []int{0, 1, maxFilterWords, maxFilterWords + 1, MaxPeers} {
		var list []netip.Addr
		for i := range peers {
			list = append(list, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}),
				netip.AddrFrom16([16]byte{0x20, 1, byte(i >> 8), byte(i)}))
		}
		w, _ := newWatchSet(list)
		program, err := bpf.Assemble(routeFilter(w))
		if err != nil {
			t.Errorf("%d peers: %v", peers, err)
		}
		if len(program) > 1024 {
			t.Errorf("%d peers: %d instructions", peers, len(program))
		}
	}
}

func TestSysfs(t *testing.T) {
	root := t.TempDir()
	add := func(name, index, address, uevent string, more ...string) {
		dir := filepath.Join(root, name)
		for _, d := range append(more, ".") {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for file, text := range map[string]string{"ifindex": index, "address": address, "uevent": uevent} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	const mac = "02:00:00:00:00:01"
	add("wlan0", "3", mac, "DEVTYPE=wlan\nINTERFACE=wlan0", "device")
	add("old0", "4", mac, "", "wireless")
	add("wwan0", "5", "", "INTERFACE=wwan0\nDEVTYPE=wwan")
	add("eth0", "6", mac, "INTERFACE=eth0")
	path, err := filepath.EvalSymlinks(filepath.Join(root, "wlan0", "device"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		link linkInfo
		want device
	}{
		{"by name", linkInfo{index: 3, name: "wlan0", addr: mac}, device{wireless: true, path: path}},
		{"renamed since", linkInfo{index: 3, name: "wlxc46e", addr: mac}, device{wireless: true, path: path}},
		{"by its directory", linkInfo{index: 4, name: "old0", addr: mac}, device{wireless: true}},
		{"wwan", linkInfo{index: 5, name: "wwan0"}, device{wwan: true}},
		{"plain", linkInfo{index: 6, name: "eth0", addr: mac}, device{}},
		{"of another namespace: other index", linkInfo{index: 9, name: "wlan0", addr: mac}, device{}},
		{"of another namespace: other address", linkInfo{index: 3, name: "wlan0", addr: "02:00:00:00:00:02"}, device{}},
		{"a name that is no name", linkInfo{index: 9, name: "../wlan0"}, device{}},
	} {
		if diff := cmp.Diff(tc.want, sysfs(root).device(&tc.link), cmp.AllowUnexported(device{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	if got := sysfs("").device(&linkInfo{index: 3, name: "wlan0"}); got != (device{}) {
		t.Errorf("without sysfs: %+v", got)
	}
}

// At most five tries, and then what there is, marked as partial.
func TestDumpTries(t *testing.T) {
	broken := errors.New("broken")
	for _, tc := range []struct {
		name        string
		interrupted int
		then        error
		tries       int
		partial     bool
	}{
		{"at once", 0, nil, 1, false},
		{"after two", 2, nil, 3, false},
		{"at the last try", 4, nil, 5, false},
		{"never", 100, nil, 5, true},
		{"another error", 1, broken, 2, false},
	} {
		s := &session{sensor: New(Options{}), rng: rand.New(rand.NewPCG(1, 1))}
		tries := 0
		partial, err := s.dump(func() error {
			tries++
			if tries <= tc.interrupted {
				return wrap("read links", errInterrupted)
			}
			return tc.then
		})
		if !errors.Is(err, tc.then) || tries != tc.tries || partial != tc.partial {
			t.Errorf("%s: %d tries, partial %v, error %v", tc.name, tries, partial, err)
		}
	}
}

func TestUnionKeepsWhatAPartialDumpMisses(t *testing.T) {
	a := mihf.Address{Prefix: netip.MustParsePrefix("10.0.0.1/24")}
	b := mihf.Address{Prefix: netip.MustParsePrefix("10.0.0.2/24")}
	old := a
	old.Tentative = true
	got := union([]mihf.Address{a}, &link{addrs: []mihf.Address{old, b}})
	if diff := cmp.Diff([]mihf.Address{a, b}, got, cmpAll); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
