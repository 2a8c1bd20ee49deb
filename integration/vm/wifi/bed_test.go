package wifi

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mdlayher/wifi"
	"github.com/vishvananda/netlink"

	"mihf.dev/integration/netns"
	"mihf.dev/integration/vm"
	"mihf.dev/integration/vm/medium"
)

func TestMain(m *testing.M) {
	if vm.InGuest() {
		if err := warm(); err != nil {
			fmt.Println("warm up:", err)
			os.Exit(1)
		}
	}
	vm.Main(m, vm.Job{
		Modules: [][]string{{"mac80211_hwsim", fmt.Sprintf("radios=%d", radios)}, {"bridge"}},
		Build:   []string{"mihf.dev/cmd/mihfd"},
		Preload: []string{"mihfd", "dbus-daemon", "hostapd", "wpa_supplicant", "wpa_cli"},
		Virtual: true,
		Keep:    keepIn(),
	})
}

// keepIn is where results go.
func keepIn() string {
	if vm.Full() {
		return filepath.Join("..", "..", "..", "docs", "results")
	}
	return ""
}

// patience is how long something may take; only a failure takes so long.
const patience = time.Minute

// The radios: a station, two access points, and stations for tests with several.
const (
	station medium.Radio = iota
	ap1
	ap2
	more
	radios = 8
)

// A bed is a station, access points and the air between them, for one test.
type bed struct {
	*medium.Medium
	t    *testing.T
	wifi *wifi.Client
	home *netns.NS // where the station is
	far  *netns.NS // where access points and what is behind them are; nil: with the station
}

// start makes the air, with which nobody hears anything yet.
func start(t *testing.T) *bed {
	t.Helper()
	vm.Guest(t)
	const seed = 1
	return startWith(t, medium.NewAir(seed))
}

func startWith(t *testing.T, air *medium.Air) *bed {
	t.Helper()
	m, err := medium.Open(air)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if s := m.Stats(); s.Unreadable > 0 {
			t.Errorf("the medium: %+v", s)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := wifi.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // only read from
	b := &bed{Medium: m, t: t, wifi: c, home: netns.Here(t)}
	for r := range medium.Radio(radios) { // a test before may have had them elsewhere
		b.eventually(ifname(r), func() bool { _, err := net.InterfaceByName(ifname(r)); return err == nil })
	}
	b.bare()
	return b
}

// fresh waits until the kernel has forgotten what was heard in another test
// (IEEE80211_SCAN_RESULT_EXPIRE).
func (b *bed) fresh() { time.Sleep(31 * time.Second) }

// bare takes the addresses from the station's interface that a test before gave it.
func (b *bed) bare() {
	b.t.Helper()
	list, err := b.home.NL.AddrList(b.home.Link(ifname(station)), netlink.FAMILY_V4)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range list {
		b.home.DelAddr(ifname(station), list[i].IPNet.String())
	}
	b.home.Down(ifname(station)) // with IPv6's, and its routes
}

// A network is what an access point offers and a station looks for. The zero value is open
// and named "mihf".
type network struct {
	ssid       string // octets
	passphrase string // WPA2; "": open
	hidden     bool
	station    string // more lines of the station's configuration
	bridge     string // of the access point
}

func (n network) name() string {
	if n.ssid == "" {
		return "mihf"
	}
	return n.ssid
}

// accessPoint starts hostapd on a radio.
func (b *bed) accessPoint(r medium.Radio, channel int, n network) *program {
	b.t.Helper()
	name := ifname(r)
	text := fmt.Sprintf("interface=%s\ndriver=nl80211\nssid2=%x\nhw_mode=g\nchannel=%d\nbeacon_int=100\n", name, n.name(), channel)
	if n.passphrase != "" {
		text += "wpa=2\nwpa_key_mgmt=WPA-PSK\nrsn_pairwise=CCMP\nwpa_passphrase=" + n.passphrase + "\n"
	}
	if n.hidden {
		text += "ignore_broadcast_ssid=1\n"
	}
	if n.bridge != "" {
		text += "bridge=" + n.bridge + "\n"
	}
	return b.programIn(b.far, "hostapd", b.file(name+".conf", text))
}

const control = "/run/mihf-supplicant"

// supplicant starts wpa_supplicant on the station's radio.
func (b *bed) supplicant(n network) *program {
	b.t.Helper()
	return b.supplicantOn(ifname(station), n)
}

// supplicantOn starts wpa_supplicant on an interface.
func (b *bed) supplicantOn(name string, n network) *program {
	b.t.Helper()
	keys := "key_mgmt=NONE"
	if n.passphrase != "" {
		keys = fmt.Sprintf("key_mgmt=WPA-PSK\n\tpsk=%q", n.passphrase)
	}
	hidden := 0
	if n.hidden {
		hidden = 1
	}
	// A scan of all channels takes 20 s here.
	config := b.file("supplicant.conf", fmt.Sprintf(`ctrl_interface=%s
p2p_disabled=1
network={
	ssid=%x
	scan_ssid=%d
	%s
	scan_freq=2412 2437
	%s
}
`, control, n.name(), hidden, keys, n.station))
	return b.program("wpa_supplicant", "-D", "nl80211", "-i", name, "-c", config)
}

func ifname(r medium.Radio) string { return fmt.Sprintf("wlan%d", r) }

func (b *bed) file(name, content string) string {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// A program runs until the test ends; its output is shown if that fails.
type program struct {
	cmd   *exec.Cmd
	out   bytes.Buffer // to be read when it has ended
	ended bool
}

func (b *bed) program(name string, args ...string) *program {
	b.t.Helper()
	return b.programIn(nil, name, args...)
}

// programIn starts a program in a namespace; nil: in that of the test.
func (b *bed) programIn(ns *netns.NS, name string, args ...string) *program {
	b.t.Helper()
	p := &program{}
	// Not the test's context: that ends before the clean-ups in which programs end in order.
	p.cmd = exec.CommandContext(context.Background(), name, args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	begin := p.cmd.Start
	if ns != nil {
		begin = func() error { return ns.Do(p.cmd.Start) }
	}
	if err := begin(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		p.end(syscall.SIGTERM)
		if b.t.Failed() {
			b.t.Logf("%s printed:\n%s", name, p.out.Bytes())
		}
	})
	return p
}

// end sends the program a signal, which ends it, and waits until it is gone.
func (p *program) end(s syscall.Signal) {
	if !p.ended {
		p.ended = true
		_ = p.cmd.Process.Signal(s) // it may have ended by itself
		_ = p.cmd.Wait()            // a signal is an error too
	}
}

// eventually waits until ok says yes.
func (b *bed) eventually(what string, ok func() bool) {
	b.t.Helper()
	const pause = 20 * time.Millisecond
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			b.t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// associated is what the kernel knows of the station's access point; nil: there is none.
func (b *bed) associated() *wifi.StationInfo {
	b.t.Helper()
	all, err := b.wifi.Interfaces()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, i := range all {
		if i.Name != ifname(station) {
			continue
		}
		// Without an access point it is an error, or nothing.
		if list, err := b.wifi.StationInfo(i); err == nil && len(list) == 1 {
			return list[0]
		}
	}
	return nil
}

// associate waits until the station is at an access point.
func (b *bed) associate() {
	b.t.Helper()
	b.eventually("association", func() bool { return b.associated() != nil })
}
