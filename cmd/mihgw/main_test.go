package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		out  string
		err  string
	}{
		{[]string{"--help"}, 0, "tcp", ""},
		{[]string{"tcp", "--help"}, 0, "--dry-run", ""},
		{[]string{"nonsense"}, exitUsage, "", `Run "mihgw --help" for usage.`},
		{[]string{"tcp", "--nonsense"}, exitUsage, "", "unknown flag"},
		{[]string{"tcp", "--uid", "me"}, exitUsage, "", "uid"},
		{[]string{"tcp", "more"}, exitUsage, "", "more"},
	} {
		var out, errOut bytes.Buffer
		if code := run(t.Context(), tt.args, &out, &errOut); code != tt.code {
			t.Errorf("%q: exit %d, want %d", tt.args, code, tt.code)
		}
		if !strings.Contains(out.String(), tt.out) || !strings.Contains(errOut.String(), tt.err) {
			t.Errorf("%q: %s%s", tt.args, &out, &errOut)
		}
	}
}
