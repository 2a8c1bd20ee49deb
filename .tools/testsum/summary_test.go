package main

import (
	"strings"
	"testing"
)

// Each case is what "go test -json" prints, less the fields that nobody reads.
func TestSummary(t *testing.T) {
	tests := map[string]struct {
		events string
		gates  []string
		ok     bool
		want   []string // in this order
	}{
		"leaves are counted and parents are not": {
			events: `
{"Action":"run","Package":"a","Test":"TestX"}
{"Action":"run","Package":"a","Test":"TestX/one"}
{"Action":"run","Package":"a","Test":"TestX/two/three"}
{"Action":"output","Package":"a","Test":"TestX/two/three","Output":"    x_test.go:7: no radio\n"}
{"Action":"output","Package":"a","Test":"TestX/two/three","Output":"    --- SKIP: TestX/two/three (0.00s)\n"}
{"Action":"pass","Package":"a","Test":"TestX/one"}
{"Action":"skip","Package":"a","Test":"TestX/two/three"}
{"Action":"pass","Package":"a","Test":"TestX"}
{"Action":"pass","Package":"a","Elapsed":0.5}`,
			ok:   true,
			want: []string{"ok    a ", "1 passed, 1 skipped\n", "a TestX/two/three: x_test.go:7: no radio\n", "\n1 passed, 0 failed, 1 skipped\n"},
		},
		"a failed subtest is one failure": {
			events: `
{"Action":"run","Package":"a","Test":"TestX"}
{"Action":"run","Package":"a","Test":"TestX/one"}
{"Action":"output","Package":"a","Test":"TestX/one","Output":"=== RUN   TestX/one\n"}
{"Action":"output","Package":"a","Test":"TestX/one","Output":"    x_test.go:9: got 1, want 2\n"}
{"Action":"fail","Package":"a","Test":"TestX/one"}
{"Action":"fail","Package":"a","Test":"TestX"}
{"Action":"output","Package":"a","Output":"-test.shuffle 42\n"}
{"Action":"fail","Package":"a"}`,
			want: []string{"FAIL  a ", "got 1, want 2\n", "-test.shuffle 42\n", "failed:\n  a TestX/one\n", "\n0 passed, 1 failed, 0 skipped\n"},
		},
		"a test that was running at a panic failed": {
			events: `
{"Action":"run","Package":"a","Test":"TestX"}
{"Action":"output","Package":"a","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"a"}`,
			want: []string{"panic: test timed out\n", "  a TestX\n", "\n0 passed, 1 failed, 0 skipped\n"},
		},
		"a package that doesn't build failed": {
			events: `
{"ImportPath":"a","Action":"build-output","Output":"a.go:1: undefined: b\n"}
{"ImportPath":"a","Action":"build-fail"}
{"Action":"fail","Package":"a","FailedBuild":"a"}`,
			want: []string{"undefined: b\n", "  a\n", "\n0 passed, 1 failed, 0 skipped\n"},
		},
		"a package without an end failed": {
			events: `
{"Action":"run","Package":"a","Test":"TestX"}
{"Action":"pass","Package":"a","Test":"TestX"}`,
			want: []string{"a (never ended)\n", "\n0 passed, 1 failed, 0 skipped\n"},
		},
		"a failed gate counts": {
			events: `
{"Action":"run","Package":"a","Test":"TestX"}
{"Action":"pass","Package":"a","Test":"TestX"}
{"Action":"pass","Package":"a"}`,
			gates: []string{"gate go vet"},
			want:  []string{"failed:\n  gate go vet\n", "\n1 passed, 1 failed, 0 skipped\n"},
		},
		"no test is a failure": {
			events: `{"Action":"skip","Package":"a"}`,
			want:   []string{"no test ran\n", "\n0 passed, 0 failed, 0 skipped\n"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			s := newSummary(&out)
			for _, gate := range tc.gates {
				s.fail(gate)
			}
			if err := read(s, strings.NewReader(strings.TrimSpace(tc.events))); err != nil {
				t.Fatal(err)
			}
			if ok := s.close(); ok != tc.ok {
				t.Errorf("ok = %v, want %v", ok, tc.ok)
			}
			rest := out.String()
			for _, want := range tc.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%q is missing or out of order in:\n%s", want, out.String())
				}
				rest = after
			}
			if rest != "" {
				t.Errorf("after the closing line: %q", rest)
			}
		})
	}
}
