package broker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/broker"
)

// audited is a broker's log of refusals.
type audited struct{ bytes.Buffer }

// lines returns what was written since the last call, without time, level and text.
func (a *audited) lines(t *testing.T) (lines []map[string]any) {
	t.Helper()
	for d := json.NewDecoder(&a.Buffer); d.More(); {
		var line map[string]any
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if line["level"] != "WARN" || line["msg"] != "request refused" || line["audit"] != true {
			t.Errorf("line %v", line)
		}
		for _, key := range []string{"time", "level", "msg", "audit"} {
			delete(line, key)
		}
		lines = append(lines, line)
	}
	return lines
}

// Every operation has its line where a role is missing; one that fails for another reason
// has none.
func TestEveryRefusalIsAudited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log audited
		b := start(t, func(c *broker.Config) {
			c.Logger, c.Access = slog.New(slog.NewJSONHandler(&log, nil)), access.New(0, 0, access.Grant{UIDs: []uint32{1001}, Roles: access.Default})
		})
		b.give(wlan, facts(true))
		ctx, none := t.Context(), mihf.SubscribeRequest{}
		guest := mihf.Caller{Front: "nats", Name: "guest", PID: 7}
		at := b.attach(bob)
		for _, c := range []struct {
			operation, role string
			ask             func(who mihf.Caller) error
		}{
			{"subscribe", "see", func(who mihf.Caller) error { _, err := b.Subscribe(ctx, who, none); return err }},
			{"handle", "see", func(who mihf.Caller) error { _, err := b.Handle(ctx, who, none, func(*mihf.Delivery) {}); return err }},
			{"snapshot", "see", func(who mihf.Caller) error { _, err := b.Snapshot(ctx, who); return err }},
			{"parameters", "see", func(who mihf.Caller) error { _, err := b.Parameters(ctx, who, wlan); return err }},
			{"information", "see", func(who mihf.Caller) error { _, err := b.Information(ctx, who, mihf.InformationRequest{}); return err }},
			{"status", "see", func(who mihf.Caller) error { _, err := b.Status(ctx, who); return err }},
			{"explain", "see", func(who mihf.Caller) error { _, err := b.Explain(ctx, who, mihf.PredictionID{}); return err }},
			{"attach", "register-own", func(who mihf.Caller) error { _, err := b.Attach(ctx, who); return err }},
			{"configure_thresholds", "command", func(who mihf.Caller) error { return b.ConfigureThresholds(ctx, who, wlan, nil) }},
			{"record", "administer", func(who mihf.Caller) error { _, err := b.Record(ctx, who, nil); return err }},
			{"register", "register-any", func(mihf.Caller) error { // bob's, who may attach
				_, err := at.Register(mihf.FlowSpec{Owner: mihf.Some(uint32(1000))})
				return err
			}},
		} {
			if err := c.ask(guest); !errors.Is(err, mihf.ErrPermission) {
				t.Errorf("%s: %v, want ErrPermission", c.operation, err)
			}
			want := map[string]any{
				"front": "nats", "identity": `NATS user "guest"`, "pid": 7.0, "operation": c.operation, "missing_role": c.role, "suppressed": 0.0,
			}
			if c.operation == "register" {
				want["front"], want["identity"], want["pid"] = "inproc", "uid 1001", 0.0
			}
			if d := cmp.Diff([]map[string]any{want}, log.lines(t)); d != "" {
				t.Errorf("%s (-want +got)\n%s", c.operation, d)
			}
			time.Sleep(time.Second) // another second, other lines
		}
		_, _ = b.Parameters(ctx, bob, wwan)
		_, _ = b.Subscribe(ctx, bob, mihf.SubscribeRequest{Kinds: 1})
		if lines := log.lines(t); lines != nil {
			t.Errorf("lines of no missing role: %v", lines)
		}
		if n := b.counter("refused_requests"); n != 12 {
			t.Errorf("%d refused, want 12", n)
		}
	})
}

// A flood has few lines, which say how many they are; the counter has all.
func TestAuditOfAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log audited
		b := start(t, func(c *broker.Config) { c.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
		refuse := func(n int) {
			for range n {
				_, _ = b.Record(t.Context(), alice, nil)
			}
		}
		refuse(1000)
		if n := len(log.lines(t)); n != access.MaxLines {
			t.Errorf("%d lines, want %d", n, access.MaxLines)
		}
		time.Sleep(time.Second)
		refuse(1)
		if lines := log.lines(t); len(lines) != 1 || lines[0]["suppressed"] != float64(1000-access.MaxLines) {
			t.Errorf("then %v", lines)
		}
		if n := b.counter("refused_requests"); n != 1001 {
			t.Errorf("%d refused, want 1001", n)
		}
	})
}

// "SetAccess puts another table in force for what is asked from now on."
func TestSetAccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		open, at := read(t, b.subscribe(alice, mihf.SubscribeRequest{}), 1), b.attach(alice)
		b.register(at, quick)
		b.SetAccess(access.New(0, 0))
		if _, err := b.Snapshot(t.Context(), alice); !errors.Is(err, mihf.ErrPermission) {
			t.Errorf("a snapshot: %v, want ErrPermission", err)
		}
		if _, err := at.Register(quick); !errors.Is(err, mihf.ErrPermission) {
			t.Errorf("a registration: %v, want ErrPermission", err)
		}
		b.give("", slept())
		open.want("snapshot at 0", "resumed_from_suspend")
		b.SetAccess(access.New(0, access.All))
		if err := b.ConfigureThresholds(context.Background(), alice, wlan, nil); errors.Is(err, mihf.ErrPermission) {
			t.Errorf("a command: %v", err)
		}
	})
}
