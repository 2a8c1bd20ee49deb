package config_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/mihf/config"
)

var known = config.Known{Predictors: []string{"ensemble", "other"}, Roles: []string{"see", "register-own", "command"}}

func TestEmptyIsDefault(t *testing.T) {
	got, err := config.Parse("f", nil, known)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(config.Defaults(), got); d != "" {
		t.Errorf("(-defaults +empty file)\n%s", d)
	}
}

// switchedOff is a key of the sample that is off.
var switchedOff = regexp.MustCompile(`(?m)^#([a-z_]+ = )`)

func TestSampleHasTheDefaults(t *testing.T) {
	for name, text := range map[string]string{
		"as it is":                        config.Sample(),
		"with every comment sign removed": switchedOff.ReplaceAllString(config.Sample(), "$1"),
	} {
		got, err := config.Parse("sample", []byte(text), known)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(config.Defaults(), got); d != "" {
			t.Errorf("%s (-defaults +sample)\n%s", name, d)
		}
	}
}

// TestSampleHasEveryKey also shows that Config has a place for each key of a file.
func TestSampleHasEveryKey(t *testing.T) {
	var got []string
	section := ""
	for line := range strings.Lines(config.Sample()) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSuffix(name, "]")
		} else if m := switchedOff.FindStringSubmatch(line); m != nil {
			got = append(got, section+"."+strings.TrimSuffix(m[1], " = "))
		} else if name, ok := strings.CutPrefix(line, "# [["); ok {
			got = append(got, strings.TrimSuffix(name, "]]"))
		}
	}
	if d := cmp.Diff(keys("", reflect.TypeFor[config.Config]()), got); d != "" {
		t.Errorf("(-Config +sample)\n%s", d)
	}
}

// TestSampleGrant: the example of a grant has every key, and is right once its comment signs
// are gone.
func TestSampleGrant(t *testing.T) {
	_, text, found := strings.Cut(config.Sample(), "# [[access.grants]]\n")
	text, _, _ = strings.Cut(text, "\n\n")
	text = strings.ReplaceAll("\n"+text, "\n# ", "\n")
	got, err := config.Parse("sample", []byte("[[access.grants]]"+text), known)
	if err != nil || !found {
		t.Fatalf("error %v for\n%s", err, text)
	}
	for field, v := range reflect.ValueOf(got.Access.Grants[0]).Fields() {
		if v.IsZero() {
			t.Errorf("the example has no %s", field.Name)
		}
	}
}

// One name with one owner may be in several grants, as a certificate and as a NATS user too.
func TestNamesInSeveralGrants(t *testing.T) {
	_, err := config.Parse("f", []byte(`
		[[access.grants]]
		certificates = ["a"]
		as_uid = 7
		[[access.grants]]
		certificates = ["b", "a"]
		roles = ["command"]
		[[access.grants]]
		certificates = ["a"]
		as_uid = 7
		[[access.grants]]
		nats_users = ["a"]
		as_uid = 8
	`), known)
	if err != nil {
		t.Error(err)
	}
}

func keys(prefix string, t reflect.Type) []string {
	if t.Kind() != reflect.Struct {
		return []string{strings.TrimPrefix(prefix, ".")}
	}
	var out []string
	for field := range t.Fields() {
		out = append(out, keys(prefix+"."+field.Tag.Get("toml"), field.Type)...)
	}
	return out
}

func TestValues(t *testing.T) {
	got, err := config.Parse("f", []byte(`
		node.name = "bus-12"
		link = { settle = "1ms", threshold = 1 , guard_threshold = 1.0 }
		[hint]
		lease = "1s"
		[predictor]
		method = "none"
		[sensors.rtnl]
		enabled = false
		buffer_bytes = 8192
		mark = 51820
		uid = 1000
		[sensors.nl80211]
		near_dbm = -70
		set_cqm = true
		[sensors.modem]
		bus = "session"
		poll = "0s"
		never_poll = ["490154203237518"]
		[sensors.sock_diag]
		enabled = false
		flows = "registered"
		poll = "2s"
		[sensors.replay]
		file = "/r"
		[grpc]
		socket = "/tmp/s"
		mode = "600"
		group = "users"
		listen = ":4552"
		cert = "/c"
		key = "/k"
		client_ca = "/ca"
		[access]
		default = []
		[[access.grants]]
		uids = [0, 4294967295]
		gids = [27]
		roles = ["command", "see"]
		[[access.grants]]
		certificates = ["bus-17"]
		nats_users = ["fleet", "bus-17"]
		as_uid = 990
		[log]
		level = "debug"
		format = "json"
		[metrics]
		listen = "[::1]:1"
	`), known)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Defaults()
	want.Node.Name = "bus-12"
	want.Link.Settle, want.Link.Threshold, want.Link.GuardThreshold = time.Millisecond, 1, 1
	want.Hint.Lease = time.Second
	want.Predictor.Method = config.NoPredictor
	want.Sensors.NL80211.NearDBm, want.Sensors.NL80211.SetCQM = -70, true
	want.Sensors.Modem.Bus, want.Sensors.Modem.Poll, want.Sensors.Modem.NeverPoll = "session", 0, []string{"490154203237518"}
	want.Sensors.Rtnl.Enabled, want.Sensors.Rtnl.BufferBytes, want.Sensors.Rtnl.Mark, want.Sensors.Rtnl.UID = false, 8192, 51820, 1000
	want.Sensors.SockDiag = config.SockDiag{Flows: config.FlowsRegistered, Poll: 2 * time.Second}
	want.Sensors.Replay.File = "/r"
	g := &want.GRPC
	g.Socket, g.Mode, g.Group, g.Listen, g.Cert, g.Key, g.ClientCA = "/tmp/s", 0o600, "users", ":4552", "/c", "/k", "/ca"
	want.Access = config.Access{Default: []string{}, Grants: []config.Grant{
		{UIDs: []uint32{0, 1<<32 - 1}, GIDs: []uint32{27}, Roles: []string{"command", "see"}},
		{Certificates: []string{"bus-17"}, NATSUsers: []string{"fleet", "bus-17"}, AsUID: new(uint32(990))},
	}}
	want.Log = config.Log{Level: slog.LevelDebug, Format: "json"}
	want.Metrics.Listen = "[::1]:1"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// grant begins a second one, of a user, at line 4.
const grant = "[[access.grants]]\nuids = [1]\nroles = [\"see\"]\n[[access.grants]]\nuids = [2]\n"

// TestErrors has one case for each way to be wrong: the text, and what each error says.
func TestErrors(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"[link\n", "f:1: "},
		{"[lnk]\n", "f:1: lnk: no such section; there are node, broker, link,"},
		{"x = 1\n", "f:1: x: no such section"},
		{"[link]\n\nsetle = \"1s\"\n", "f:3: link.setle: no such key; [link] has settle, roam_withhold,"},
		{"[sensors.wifi]\n", "f:1: sensors.wifi: no such key; [sensors] has rtnl, nl80211, modem, sock_diag, suspend, replay"},
		{"[link]\nsettle = 30\n", `f:2: link.settle: must be a string in quotes, for example "30ms"`},
		{"[link]\nthreshold = \"x\"\n", "f:2: link.threshold: must be a number"},
		{"[broker]\ninputs = 1.5\n", "f:2: broker.inputs: must be a whole number"},
		{"[sensors.nl80211]\nnear_dbm = -10\n", "f:2: sensors.nl80211.near_dbm: -10 is out of range; give -100 to -20"},
		{"[sensors.modem]\npoll = \"1500ms\"\n", "f:2: sensors.modem.poll: 1.5s is no whole number of seconds, as ModemManager wants it"},
		{"[sensors.modem]\nnever_poll = [\"a\", \"\"]\n", "f:2: sensors.modem.never_poll: \"\" is not possible; give 1 to 256 characters that can be shown"},
		{"[sensors.modem]\nbus = \"none\"\n", "f:2: sensors.modem.bus: \"none\" is not possible; give \"system\", \"session\", or an address \"unix:path=/path\""},
		{"[sensors.nl80211]\npoll_far = \"200ms\"\npoll_near = \"1s\"\n", "f:3: sensors.nl80211.poll_near: 1s is longer than sensors.nl80211.poll_far, 200ms: close to a loss the signal is read more often, not less"},
		{"[sensors.sock_diag]\nflows = \"mine\"\n", `f:2: sensors.sock_diag.flows: "mine" is not known; give one of all, registered`},
		{"[sensors.sock_diag]\npoll = \"50ms\"\n", "f:2: sensors.sock_diag.poll: 50ms is out of range; give 100ms to 1m0s"},
		{"[sensors.rtnl]\nenabled = 1\n", "f:2: sensors.rtnl.enabled: must be true or false"},
		{"[access]\ndefault = \"see\"\n", `f:2: access.default: must be a list of names, for example ["a", "b"]`},
		{"[access]\ndefault = [\"see\", \"rule\"]\n", `f:2: access.default: "rule" is no role; give some of see, register-own, command`},
		{"[access]\ngrants = 1\n", "f:2: access.grants: must be "},
		{"[[access.grants]]\nuids = [-1]\n", "f:2: access.grants.uids: must be a list of numbers"},
		{"[[access.grants]]\nuids = 3\n", "f:2: access.grants.uids: must be a list of numbers"},
		{"[[access.grants]]\nuid = [3]\n", "f:2: access.grants.uid: no such key; [access.grants] has uids, gids,"},
		{"[[access.grants]]\nas_uid = \"x\"\n", "f:2: access.grants.as_uid: must be the number of a user"},
		{grant + "roles = [\"rule\"]\n", `f:6: access.grants[1].roles: "rule" is no role; give some of see,`},
		{"[[access.grants]]\nroles = [\"see\"]\n", "f:1: access.grants[0]: is for nobody; give uids, gids, certificates or nats_users"},
		{"access.grants = [{uids = [1], roles = [\"see\"]},\n{uids = [2]}]\n", "f:1: access.grants[1]: gives nothing; give roles, some of see,"},
		{"access.grants = [{uids = [1], roles = [\"see\"]},\n{uids = [2],\nroles = [\"x\"]}]\n", `f:3: access.grants[1].roles: "x" is no role`},
		{grant + "as_uid = 7\n", "f:6: access.grants[1].as_uid: is for certificates and nats_users, and the grant names none"},
		{grant + "certificates = [\"\"]\nas_uid = 7\n", "f:6: access.grants[1].certificates: has an empty name"},
		{grant + "nats_users = [\"\"]\nas_uid = 7\n", "f:6: access.grants[1].nats_users: has an empty name"},
		{
			"[[access.grants]]\nnats_users = [\"a\"]\nas_uid = 7\n[[access.grants]]\nnats_users = [\"b\", \"a\"]\nas_uid = 8\n",
			`f:6: access.grants[1].as_uid: "a" in nats_users has the as_uid 7 already`,
		},
		{"link = 1\n", "f:1: link: must be a section"},
		{"[link]\nsettle \"30ms\"\n", "f:2: expected '=' after key; see the sample"},
		{"[link]\nsettle = 30ms\n", "f:2: strings must be quoted; see the sample"},
		{"[link]\nsettle = \"30\"\n", `f:2: link.settle: "30" is not a duration; write a number with its unit`},
		{"[link]\nsettle = \"-1s\"\n", "f:2: link.settle: -1s is out of range; give 0s to 1s"},
		{"link.settle = \"1h\"\n", "f:1: link.settle: 1h0m0s is out of range"},
		{"[link]\nthreshold = nan\n", "f:2: link.threshold: NaN is out of range; give 0 to 1"},
		{"[link]\nthreshold = 0\nrollback_below = 0\n", "f:2: link.threshold: 0 would announce"},
		{"[link]\nthreshold = 0.1\n", "link.rollback_below: 0.2 is not below link.threshold, 0.1"},
		{"[link]\nguard_threshold = 0.4\n", "f:2: link.guard_threshold: 0.4 is below link.threshold"},
		{"[link]\nmax_open = \"1s\"\n", "f:2: link.max_open: 1s is shorter than link.horizon, 2s"},
		{"[hint]\nlease = \"1m\"\nmax_freeze = \"5s\"\n", "f:2: hint.lease: 1m0s is longer than hint.max_freeze, 5s"},
		{"[hint]\nmin_margin = \"1s\"\n", "f:2: hint.min_margin: 1s is more than"},
		{"[hint]\nbackoff = \"1h\"\n", "f:2: hint.backoff: 1h0m0s is longer than"},
		{"[broker]\nreplay = 1\n", "f:2: broker.replay: 1 is out of range; give 64 to 1048576"},
		{"[node]\nname = \"a b\"\n", `f:2: node.name: "a b" is not possible; give 1 to 64 letters`},
		{"[predictor]\nmethod = \"magic\"\n", `f:2: predictor.method: "magic" is not known; give one of ensemble, other, none`},
		{"[grpc]\nmode = \"660x\"\n", `f:2: grpc.mode: "660x" is not a mode`},
		{"[grpc]\nmode = \"0770\"\n", `f:2: grpc.mode: "0770" is not a mode`},
		{"[grpc]\nmode = \"0066\"\n", `f:2: grpc.mode: "0066" is not a mode`},
		{"[grpc]\nsocket = \"s\"\n", `f:2: grpc.socket: "s" is not an absolute path`},
		{"[grpc]\nsocket = \"/" + strings.Repeat("x", 107) + "\"\n", "f:2: grpc.socket: has 108 bytes; a socket's path may have 107"},
		{"[sensors.replay]\nfile = \"r\"\n", `f:2: sensors.replay.file: "r" is not an absolute path`},
		{"[grpc]\ngroup = \"a:b\"\n", `f:2: grpc.group: "a:b" is not possible`},
		{"[grpc]\nlisten = \"4552\"\n", `f:2: grpc.listen: "4552" is not an address with a port`},
		{"[grpc]\nlisten = \"h:65536\"\n", `f:2: grpc.listen: "h:65536" is not an address with a port`},
		{"[grpc]\nlisten = \":1\"\ncert = \"/c\"\nkey = \"/k\"\n", "f: grpc.client_ca: must be given with grpc.listen"},
		{"[log]\nlevel = \"loud\"\n", `f:2: log.level: "loud" is not known; give one of debug, info, warn, error`},
		{"[log]\nformat = \"xml\"\n", `f:2: log.format: "xml" is not known; give one of text, json`},
		{"[grpc]\ncert = \"/\\u001b]0;x\\u0007\"\n", `f:2: grpc.cert: "/\x1b]0;x\a" has characters that cannot be shown`},
		{"[node]\n\"\\u001b[31m\\u202e\" = 1\n", `f:2: node.\x1b[31m\xe2\x80\xae: no such key`},
		{"\"\\u009b\" = 1\n\"\\u009b\" = 2\n", `f:2: \xc2\x9b: key \xc2\x9b is already defined`},
		{strings.Repeat("k.", 20000) + "k = 1\n", strings.Repeat("k.", 100) + "…: no such section"},
		{strings.Repeat("[k]\n", 2000), "f: has more than 1000 keys"},
		{"k = {" + strings.Repeat("k = 1, ", 2000) + "k = 1}\n", "f: has more than 1000 keys"},
		{"[metrics]\nlisten = \":9\"\n", `f:2: metrics.listen: ":9" can be reached from other hosts`},
		{"[metrics]\nlisten = \"192.0.2.1:9\"\n", "metrics.allow_remote = true"},
	} {
		_, err := config.Parse("f", []byte(tc.text), known)
		if err == nil {
			t.Errorf("no error for\n%s", tc.text)
		} else if !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "raw") || strings.Contains(err.Error(), "toml:") {
			t.Errorf("error %q, want %q in it, for\n%s", err, tc.want, tc.text)
		}
	}
}

func TestErrorsComeTogetherInOrder(t *testing.T) {
	_, err := config.Parse("/etc/f", []byte("[hint]\nlease = \"x\"\nlese = 1\n[log]\nlevel = \"y\"\n[grpc]\nlisten = \":1\"\n"), known)
	errs, ok := errors.AsType[config.Errors](err)
	if !ok {
		t.Fatalf("error %v is not of type Errors", err)
	}
	var got []string
	for _, e := range errs {
		got = append(got, e.Key)
	}
	want := []string{"grpc.cert", "grpc.key", "grpc.client_ca", "hint.lease", "hint.lese", "log.level"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if n := strings.Count(err.Error(), "/etc/f"); n != len(want) {
		t.Errorf("the file is named %d times, want %d:\n%v", n, len(want), err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := config.Load(filepath.Join(dir, "none"), known); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want fs.ErrNotExist", err)
	}
	if _, err := config.Load(dir, known); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v for a directory", err)
	}
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("[node]\nname = \"n\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(path, known)
	if err != nil || got.Node.Name != "n" {
		t.Errorf("node %q, error %v", got.Node.Name, err)
	}
	if _, err := config.Load("/dev/zero", known); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("error %v for a file without an end", err)
	}
}

func TestChanged(t *testing.T) {
	a, b := config.Defaults(), config.Defaults()
	if got := config.Changed(&a, &b); got != nil {
		t.Errorf("equal configurations differ in %v", got)
	}
	b.Node.Name, b.Sensors.Rtnl.Enabled, b.Sensors.Replay.File = "x", false, "/r"
	b.Access.Grants, b.Log.Level = []config.Grant{{}}, slog.LevelWarn
	want := []string{"node.name", "sensors.rtnl.enabled", "sensors.replay.file", "access.grants", "log.level"}
	if d := cmp.Diff(want, config.Changed(&a, &b)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if config.Live("node.name") || config.Live("sensors.replay.file") || !config.Live("log.level") || !config.Live("access.default") {
		t.Error("of these only log.level and access.default change without a restart")
	}
}

func TestFindPaths(t *testing.T) {
	for _, tc := range []struct {
		name   string
		uid    int
		env    map[string]string
		exists bool
		want   config.Paths
	}{
		{name: "root", uid: 0, env: map[string]string{"HOME": "/root", "XDG_RUNTIME_DIR": "/run/user/0"}, want: config.Paths{
			Config: "/etc/mihf/mihfd.toml", State: "/var/lib/mihf", Socket: "/run/mihf/mihfd.sock",
		}},
		{name: "service with its own user", uid: 998, env: map[string]string{
			"STATE_DIRECTORY": "/var/lib/mihf", "RUNTIME_DIRECTORY": "/run/mihf:/run/other", "CONFIGURATION_DIRECTORY": "/etc/mihf",
		}, want: config.Paths{Config: "/etc/mihf/mihfd.toml", State: "/var/lib/mihf", Socket: "/run/mihf/mihfd.sock"}},
		{name: "user", uid: 1000, env: map[string]string{"HOME": "/home/u", "XDG_RUNTIME_DIR": "/run/user/1000"}, want: config.Paths{
			Config: "/home/u/.config/mihf/mihfd.toml", State: "/home/u/.local/state/mihf", Socket: "/run/user/1000/mihf/mihfd.sock",
		}},
		{name: "user with other directories", uid: 1000, env: map[string]string{
			"HOME": "/home/u", "XDG_RUNTIME_DIR": "/r", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "relative",
		}, want: config.Paths{
			Config: "/c/mihf/mihfd.toml", State: "/home/u/.local/state/mihf", Socket: "/r/mihf/mihfd.sock",
		}},
		{name: "user without a session variable", uid: 1000, env: map[string]string{"HOME": "/home/u"}, exists: true, want: config.Paths{
			Config: "/home/u/.config/mihf/mihfd.toml", State: "/home/u/.local/state/mihf", Socket: "/run/user/1000/mihf/mihfd.sock",
		}},
		{name: "user without a session", uid: 1000, env: map[string]string{"HOME": "/home/u"}, want: config.Paths{
			Config: "/home/u/.config/mihf/mihfd.toml", State: "/home/u/.local/state/mihf", Socket: "/home/u/.local/state/mihf/mihfd.sock",
		}},
	} {
		got := config.FindPaths(func(k string) string { return tc.env[k] }, tc.uid, func(string) bool { return tc.exists })
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", tc.name, d)
		}
	}
}
