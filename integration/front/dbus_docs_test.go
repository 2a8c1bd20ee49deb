package front

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mihf.dev/clients/mihdbus"
	"mihf.dev/integration/daemons"
	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/front/dbusfront"
)

// shown is what each line of docs/dbus.md has to print, by what it has in it. Every line is
// in it, and every entry is used.
var shown = map[string]string{
	" tree ": "/dev/mihf/MIHF1/Link/wifi_2d00000001",
	"introspect dev.mihf.MIHF1 /dev/mihf/MIHF1 ":     ".GetSnapshot",
	"introspect dev.mihf.MIHF1 /dev/mihf/MIHF1/Link": ".LinkGoingDown",
	" get-property ":        "b true",
	" GetSnapshot ":         "a{sv}",
	" GetParameters ":       `"wifi-00000001"`,
	" GetInformation ":      "a{sv}",
	" Status ":              "a{sv}",
	" GetManagedObjects ":   "dev.mihf.MIHF1.Link",
	" ConfigureThresholds ": "a{sv} 0",
	" RegisterFlow ":        `"flow" s "`,
	" monitor ":             "Member=ResumedFromSuspend",
}

// Every busctl line of the documentation works as it stands there, but for the bus.
func TestDBusOneLiners(t *testing.T) {
	bus := daemons.Bus(t, daemons.BusConfig{})
	cfg := broker.Config{Engine: engine.Defaults()}
	cfg.Engine.Boot = boot
	br := broker.New(cfg)
	s, err := dbusfront.New(dbusfront.Options{Broker: br, Address: func() (string, error) { return bus.Address, nil }})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, br.Run, s.Run)
	<-s.Ready()
	see := sees(br)
	see(facts(true), wlan)
	see(rssi(-60), wlan)
	c, err := mihdbus.Dial(bus.Address, mihdbus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for up := false; !up; {
		l, err := c.Parameters(t.Context(), wlan)
		up = err == nil && l.Up && l.Values.Len() > 0
	}
	used := map[string]bool{}
	for _, line := range oneLiners(t) {
		want := ""
		for part, text := range shown {
			if strings.Contains(line+" ", part) {
				want, used[part] = text, true
			}
		}
		if want == "" {
			t.Errorf("%s: what it has to print is not known here", line)
			continue
		}
		line = strings.Replace(line, "--system", "--address="+bus.Address, 1)
		if strings.Contains(line, " monitor ") {
			monitor(t, line, want, func() { see(mihf.Observation{Kind: mihf.ObsResume, Gap: 1}, "") })
			continue
		}
		out, err := shell(t, line).CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte(want)) {
			t.Errorf("%s: %v\n%s\nwant %q", line, err, out, want)
		}
		if strings.Contains(line, "--json") && !json.Valid(out) {
			t.Errorf("%s: %s is not JSON", line, out)
		}
	}
	for part := range shown {
		if !used[part] {
			t.Errorf("no line has %q", part)
		}
	}
}

// oneLiners returns the commands of the documentation.
func oneLiners(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/dbus.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if command, ok := strings.CutPrefix(line, "    busctl "); ok {
			command, _, _ = strings.Cut(command, " #")
			lines = append(lines, "busctl "+strings.TrimSpace(command))
		}
	}
	return lines
}

// shell runs a line as a user types it, with the busctl of the tests.
func shell(t *testing.T, line string) *exec.Cmd {
	t.Helper()
	busctl := daemons.Command(t, "busctl")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(line, "busctl ", `exec "$BUSCTL" --no-pager `, 1)) //nolint:gosec // a line of our own documentation
	cmd.Env = append(busctl.Environ(), "BUSCTL="+busctl.Path)
	return cmd
}

// monitor runs a command that does not end until it has printed something.
func monitor(t *testing.T, line, want string, cause func()) {
	t.Helper()
	cmd := shell(t, line)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan bool)
	go func() {
		var all bytes.Buffer
		buf := make([]byte, 4096)
		for {
			n, err := out.Read(buf)
			if all.Write(buf[:n]); bytes.Contains(all.Bytes(), []byte(want)) || err != nil {
				found <- err == nil
				return
			}
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	ok := false
	for waiting := true; waiting; {
		cause() // again and again: it does not say when it listens
		select {
		case ok = <-found:
			waiting = false
		case <-ctx.Done():
			waiting = false
		case <-time.After(10 * time.Millisecond):
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	if !ok {
		if ctx.Err() != nil {
			<-found
		}
		t.Errorf("%s did not print %q", line, want)
	}
}
