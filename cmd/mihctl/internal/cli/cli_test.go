package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"mihf.dev/mihf"
	"mihf.dev/proto/dbusapi"
)

// Flags become what Link_Configure_Thresholds asks for.
func TestThresholdItems(t *testing.T) {
	below := mihf.Some(mihf.Threshold{Value: -75, Direction: mihf.ThresholdBelow})
	above := mihf.Some(mihf.Threshold{Value: -40, Direction: mihf.ThresholdAbove})
	for name, c := range map[string]struct {
		flags thresholdFlags
		want  []mihf.ThresholdConfig
	}{
		"both": {
			thresholdFlags{below: -75, isBelow: true, above: -40, isAbove: true, hysteresis: 3},
			[]mihf.ThresholdConfig{{Threshold: below, Hysteresis: 3}, {Threshold: above, Hysteresis: 3}},
		},
		"one-shot":    {thresholdFlags{below: -75, isBelow: true, oneShot: true}, []mihf.ThresholdConfig{{Threshold: below, Action: mihf.ThresholdOneShot}}},
		"period":      {thresholdFlags{period: 1e9}, []mihf.ThresholdConfig{{Period: 1e9}}},
		"cancel one":  {thresholdFlags{below: -75, isBelow: true, cancel: true}, []mihf.ThresholdConfig{{Threshold: below, Action: mihf.ThresholdCancel}}},
		"cancel all":  {thresholdFlags{cancel: true}, []mihf.ThresholdConfig{{Action: mihf.ThresholdCancel}}},
		"zero is one": {thresholdFlags{isAbove: true}, nil}, // -0 dBm is no RSSI, but it was given
	} {
		got, err := c.flags.items(mihf.ParamRSSI)
		if (err != nil) != (c.want == nil) {
			t.Errorf("%s: error %v", name, err)
		}
		if err != nil {
			continue
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(mihf.Opt[mihf.Threshold]{})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// What a terminal would obey leaves as an escape, and comes back as it was.
func TestPrintable(t *testing.T) {
	want := "é\u202e\u2066\u009b31m\x7f\x1b]52;c;x\a\u200b\U000e0001\U0001f600"
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	s := printable(b)
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("not printable: %q", s)
	}
	var got string
	if err := json.Unmarshal([]byte(s), &got); err != nil || got != want {
		t.Errorf("%q became %q, error %v", want, got, err)
	}
}

// What a refusal asks for depends on who refused.
func TestPermissionHint(t *testing.T) {
	for _, tc := range []struct {
		via  string
		err  error
		want string
	}{
		{viaDBus, dbusapi.NewError(dbusapi.ErrorAccessDenied, "Rejected send message, 2 matched rules"), "dev.mihf.MIHF1.conf"},
		{viaDBus, dbusapi.NewError(dbusapi.ErrorAccessDenied, mihf.ErrPermission.Error()+": uid 7 lacks the role command"), "[access]"},
		{viaGRPC, mihf.ErrPermission, "[access]"},
		{viaNATS, mihf.ErrPermission, "[access]"},
		{viaNATS, fmt.Errorf("%w: %w", mihf.ErrPermission, nats.ErrAuthorization), "--creds"},
		{viaNATS, fmt.Errorf("%w: %w", mihf.ErrPermission, nats.ErrPermissionViolation), "--node"},
	} {
		a := &app{via: tc.via}
		if got := a.permissionHint(tc.err); !strings.Contains(got, tc.want) {
			t.Errorf("%s, %v: %q, want %s in it", tc.via, tc.err, got, tc.want)
		}
	}
}
