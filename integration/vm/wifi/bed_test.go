package wifi

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mdlayher/wifi"

	"mihf.dev/integration/vm"
	"mihf.dev/integration/vm/medium"
)

func TestMain(m *testing.M) {
	if !vm.InGuest() && !vm.Full() {
		os.Exit(m.Run()) // each test says why it is skipped
	}
	vm.Main(m, vm.Job{
		Modules: [][]string{{"mac80211_hwsim", "radios=3"}},
		Build:   []string{"mihf.dev/cmd/mihfd"},
	})
}

// patience is how long something may take in an emulated guest on a busy machine; only a
// failure takes so long.
const patience = time.Minute

const (
	station medium.Radio = iota
	ap1
	ap2
)

// A bed is a station, access points and the air between them, for one test.
type bed struct {
	*medium.Medium
	t    *testing.T
	wifi *wifi.Client
}

// start makes the air, with which nobody hears anything yet.
func start(t *testing.T) *bed {
	t.Helper()
	if !vm.InGuest() && !vm.Full() {
		t.Skip("MIHF_FULL is not set: an emulated radio is late beside other tests, so make results runs these alone")
	}
	vm.Guest(t)
	const seed = 1
	m, err := medium.Open(medium.NewAir(seed))
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
		t.Logf("the medium: %+v", m.Stats())
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := wifi.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // only read from
	return &bed{Medium: m, t: t, wifi: c}
}

// accessPoint starts hostapd on a radio: an open network "mihf".
func (b *bed) accessPoint(r medium.Radio, channel int) {
	b.t.Helper()
	name := ifname(r)
	b.program("hostapd", b.file(name+".conf", fmt.Sprintf(`interface=%s
driver=nl80211
ssid=mihf
hw_mode=g
channel=%d
beacon_int=100
`, name, channel)))
}

// supplicant starts wpa_supplicant on the station's radio.
func (b *bed) supplicant() {
	b.t.Helper()
	// A scan of all channels takes 20 s here.
	config := b.file("supplicant.conf", `p2p_disabled=1
network={
	ssid="mihf"
	key_mgmt=NONE
	scan_freq=2412 2437
}
`)
	b.program("wpa_supplicant", "-D", "nl80211", "-i", ifname(station), "-c", config)
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

func (b *bed) program(name string, args ...string) {
	b.t.Helper()
	p := &program{}
	// Not the test's context: that ends before the clean-ups in which programs end in order.
	p.cmd = exec.CommandContext(context.Background(), name, args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		p.end(syscall.SIGTERM)
		if b.t.Failed() {
			b.t.Logf("%s printed:\n%s", name, p.out.Bytes())
		}
	})
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
