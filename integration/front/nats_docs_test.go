package front

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"mihf.dev/clients"
	"mihf.dev/clients/mihnats"
	"mihf.dev/integration/daemons"
	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/front/natsfront"
	"mihf.dev/proto/natsproto"
)

// natsShown is what each line of docs/nats.md has to print, by what it has in it. Every line
// is in it, and every entry is used.
var natsShown = map[string]string{
	"svc.nodes":            "host-1",
	"svc.snapshot":         `"links"`,
	":GetParameters":       `"wifi-00000001"`,
	":ConfigureThresholds": "{}",
	"svc.info":             "{",
	"svc.admin":            `"boot_id"`,
	" sub ":                "mih.v1.host-1.event._.resumed_from_suspend",
}

// Every nats line of the documentation works as it stands there, but for the server.
func TestNATSOneLiners(t *testing.T) {
	table := access.New(daemon, 0, access.Grant{
		NATSUsers: []string{"alice"}, Roles: access.Of(access.See, access.RegisterOwn, access.Command), AsUID: mihf.Some(uint32(1000)),
	})
	cfg := broker.Config{Engine: engine.Defaults(), Access: table}
	cfg.Engine.Boot, cfg.Engine.Node = boot, "host-1"
	br := broker.New(cfg)
	s, err := natsfront.New(natsfront.Options{
		Broker: br, Reader: inside, Grace: 50 * time.Millisecond,
		Embedded: &natsfront.Embedded{Listen: "127.0.0.1:0", Users: []natsfront.User{{Name: "alice", Secret: natsSecret}}},
		Grant: func(who mihf.Caller) natsfront.Grant {
			return natsfront.Grant{Events: table.May(who, access.See), Owner: table.UID(who)}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, br.Run, s.Run)
	<-s.Ready()
	see := sees(br)
	see(facts(true), wlan)
	see(rssi(-60), wlan)
	used := map[string]bool{}
	for _, line := range natsLines(t) {
		want := ""
		for part, text := range natsShown {
			if strings.Contains(line, part) {
				want, used[part] = text, true
			}
		}
		if want == "" {
			t.Errorf("%s: what it has to print is not known here", line)
			continue
		}
		ended := make(chan struct{})
		var sensor sync.WaitGroup
		sensor.Go(func() { // again and again: one who listens cannot say when it does
			for n := 1; strings.Contains(line, " sub "); n++ {
				see(mihf.Observation{Kind: mihf.ObsResume, Gap: time.Duration(n)}, "")
				select {
				case <-ended:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
		out, err := natsShell(t, line, s.Addr().String()).CombinedOutput()
		close(ended)
		sensor.Wait()
		if err != nil || !bytes.Contains(out, []byte(want)) {
			t.Errorf("%s: %v\n%s\nwant %q", line, err, out, want)
		}
	}
	for part := range natsShown {
		if !used[part] {
			t.Errorf("no line has %q", part)
		}
	}
}

// natsBlock returns a block of a server's configuration from the documentation.
func natsBlock(t *testing.T, first string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/nats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n    "+first+" {\n")
	block, _, ended := strings.Cut(rest, "\n    }\n")
	if !found || !ended {
		t.Fatalf("docs/nats.md has no block %q", first)
	}
	return first + " {\n" + strings.ReplaceAll(block, "…", natsSecret) + "\n}\n"
}

// outside is a broker whose front speaks to a server with a configuration of the
// documentation.
func outside(t *testing.T, config string, x natsfront.External, grants ...access.Grant) (*broker.Broker, string) {
	t.Helper()
	table := access.New(daemon, 0, grants...)
	server := daemons.NATS(t, daemons.NATSConfig{Config: config})
	cfg := broker.Config{Engine: engine.Defaults(), Access: table}
	cfg.Engine.Boot, cfg.Engine.Node = boot, "host-1"
	br := broker.New(cfg)
	x.Servers = []string{server.URL}
	s, err := natsfront.New(natsfront.Options{
		Broker: br, Reader: inside, Grace: 50 * time.Millisecond, External: &x,
		Grant: func(who mihf.Caller) natsfront.Grant {
			return natsfront.Grant{Events: table.May(who, access.See), Owner: table.UID(who)}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, br.Run, s.Run)
	return br, server.URL
}

// follows checks that a client follows a broker.
func follows(t *testing.T, br *broker.Broker, c clients.Client, req mihf.SubscribeRequest) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	for _, err := c.Status(ctx); err != nil; _, err = c.Status(ctx) { // the front is ready before it is connected
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	feed, err := c.Follow(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	buf := make([]mihf.Delivery, 1)
	for {
		if _, err := feed.Next(buf); err != nil {
			t.Fatal(err)
		}
		switch {
		case buf[0].Kind == mihf.DeliverSnapshot:
			br.Observe(&mihf.Observation{At: br.Now(), Kind: mihf.ObsResume, Gap: 1})
		case isMark(&buf[0], 1):
			return
		}
	}
}

// The permissions that docs/nats.md gives for a server that is there already: users follow
// and ask, and only the daemon may publish what it says.
func TestNATSPermissionsOfTheDocs(t *testing.T) {
	br, url := outside(t, natsBlock(t, "authorization"), natsfront.External{Auth: []nats.Option{
		nats.UserInfo("mihfd", natsSecret),
	}}, access.Grant{NATSUsers: []string{"external"}, Roles: access.Of(access.See)})
	c, err := mihnats.Dial(url, mihnats.Options{User: "fleet", Password: natsSecret})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	follows(t, br, c, mihf.SubscribeRequest{})
	refused := make(chan error, 16)
	by, err := nats.Connect(url, nats.UserInfo("fleet", natsSecret), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(by.Close)
	for _, subject := range []string{
		natsproto.Event("host-1", wlan, mihf.LinkDown), natsproto.Hint("host-1", "F", mihf.HintFreeze), natsproto.Sync("host-1"), "_INBOX.other.x",
	} {
		if err := by.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		if err := <-refused; !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("%s: %v", subject, err)
		}
	}
}

// The accounts that docs/nats.md gives, by which the daemon knows who asks.
func TestNATSAccountsOfTheDocs(t *testing.T) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	key, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(natsBlock(t, "accounts"), `nkey: "U`+natsSecret, `nkey: "`+key, 1)
	br, url := outside(t, config, natsfront.External{Auth: []nats.Option{nats.Nkey(key, pair.Sign)}, TrustRequestInfo: true},
		access.Grant{NATSUsers: []string{"alice"}, Roles: access.Of(access.See, access.RegisterOwn), AsUID: mihf.Some(uint32(1000))})
	c, err := mihnats.Dial(url, mihnats.Options{User: "alice", Password: natsSecret})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	follows(t, br, c, mihf.SubscribeRequest{Hints: true})
	if _, err := c.Record(t.Context(), func(*mihf.Observation) error { return nil }); !errors.Is(err, mihf.ErrPermission) || !strings.Contains(err.Error(), "alice") {
		t.Errorf("%v does not say who lacks a role", err)
	}
	at, err := c.Attach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	if _, err := at.Register(mihf.FlowSpec{Link: wlan}); err != nil {
		t.Error(err)
	}
}

// natsLines returns the commands of the documentation.
func natsLines(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/nats.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if command, ok := strings.CutPrefix(line, "    nats "); ok {
			command, _, _ = strings.Cut(command, "    #")
			lines = append(lines, "nats "+strings.TrimSpace(command))
		}
	}
	return lines
}

// natsShell runs a line as a user types it, with the tool of the tests.
func natsShell(t *testing.T, line, address string) *exec.Cmd {
	t.Helper()
	tool := daemons.Command(t, "nats")
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "sh", "-c", strings.Replace(line, "nats ", `exec "$NATS_TOOL" --server "$NATS_AT" `, 1)) //nolint:gosec // a line of our own documentation
	cmd.Env = append(tool.Environ(), "NATS_TOOL="+tool.Path, "NATS_AT=nats://"+address, "HOME="+t.TempDir())
	return cmd
}
