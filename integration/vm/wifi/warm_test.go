package wifi

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// warm runs each program that scenarios start once, until it is ready, however long that takes:
// what it looks for in the host's files is in the kernel's memory from then on.
func warm() error {
	dir, err := os.MkdirTemp("", "warm")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // in the guest's memory
	for name, text := range map[string]string{
		"bus.conf":   "<busconfig><listen>unix:path=" + dir + "/bus</listen><auth>EXTERNAL</auth><policy context=\"default\"><allow user=\"*\"/></policy></busconfig>\n",
		"mihfd.toml": "[grpc]\nsocket = \"" + dir + "/mihfd.sock\"\n[dbus]\nbus = \"none\"\n",
		"ap.conf":    "interface=wlan1\ndriver=nl80211\nssid=warm\nhw_mode=g\nchannel=1\n",
		"sta.conf":   "ctrl_interface=" + control + "\np2p_disabled=1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, p := range []struct {
		ready string // what it prints then
		args  []string
	}{
		{"unix:", []string{"dbus-daemon", "--config-file=" + dir + "/bus.conf", "--nofork", "--nopidfile", "--print-address=1"}},
		{"ready", []string{"mihfd", "-config", dir + "/mihfd.toml"}},
		{"AP-ENABLED", []string{"hostapd", dir + "/ap.conf"}},
		{"Successfully", []string{"wpa_supplicant", "-D", "nl80211", "-i", "wlan0", "-c", dir + "/sta.conf"}},
		{"wpa_cli", []string{"wpa_cli", "-v"}},
	} {
		if err := warmUp(p.ready, p.args, dir); err != nil {
			return fmt.Errorf("%s: %w", p.args[0], err)
		}
	}
	return nil
}

// warmUp runs a program until it has printed a word.
func warmUp(ready string, args []string, dir string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "STATE_DIRECTORY="+filepath.Join(dir, "state"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	lines, text := bufio.NewScanner(out), strings.Builder{}
	for lines.Scan() {
		if strings.Contains(lines.Text(), ready) {
			cancel()
			_ = cmd.Wait() // ended by the signal
			return nil
		}
		text.WriteString(lines.Text() + "\n")
	}
	return fmt.Errorf("it printed no %q: %w\n%s", ready, cmd.Wait(), text.String())
}
