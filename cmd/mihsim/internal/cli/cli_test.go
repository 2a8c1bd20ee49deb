package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/cmd/mihsim/internal/experiment"
)

// sample is an experiment that gives back what it was asked.
var sample = experiment.Experiment{
	Name: "sample", Short: "an example", Runs: 20,
	Run: func(ctx context.Context, o experiment.Options) (*experiment.Result, error) {
		if o.Seed == 13 {
			return nil, errors.New("unlucky")
		}
		if o.Seed == 14 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for i := range 20 {
			o.Progress(i+1, 20)
		}
		return &experiment.Result{
			Rows:   []experiment.Row{{{Name: "runs", Value: o.Runs}}},
			Claims: []experiment.Claim{{Name: "a", Holds: false}},
			Plots:  []experiment.Plot{{Name: "p", Lines: []experiment.Line{{Name: "l", Points: []experiment.Point{{X: 1, Y: 1}, {X: 2, Y: 2}}}}}},
		}, nil
	},
}

func call(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(t.Context(), []experiment.Experiment{sample}, args, &o, &e)
	return code, o.String(), e.String()
}

func TestList(t *testing.T) {
	code, out, errOut := call(t, "list")
	if code != 0 || errOut != "" || out != "NAME    RUNS  WHAT\nsample  20    an example\n" {
		t.Errorf("%d %q %q", code, out, errOut)
	}
	code, out, errOut = call(t, "list", "--json")
	if code != 0 || errOut != "" || out != `{"name":"sample","short":"an example","runs":20}`+"\n" {
		t.Errorf("%d %q %q", code, out, errOut)
	}
}

// "one object {experiment, seed, runs, rows, claims}"; a claim that doesn't hold is no failure.
func TestRunJSON(t *testing.T) {
	code, out, errOut := call(t, "run", "sample", "--seed", "3", "--runs", "4", "--json")
	want := `{"experiment":"sample","seed":3,"runs":4,"rows":[{"runs":4}],"claims":[{"name":"a","paper":"","ours":"","holds":false,"note":""}]}` + "\n"
	if code != 0 || out != want {
		t.Errorf("%d %s", code, cmp.Diff(want, out))
	}
	if n := strings.Count(errOut, "\n"); n != 10 || !strings.Contains(errOut, "sample: 20 of 20 parts") {
		t.Errorf("progress in %d lines: %q", n, errOut)
	}
}

func TestRunMarkdownAndFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	code, out, errOut := call(t, "run", "sample", "--out", dir)
	if code != 0 || !strings.HasPrefix(out, "# sample\n\nSeed 1, 20 runs.\n") {
		t.Errorf("%d %q", code, out)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 4 {
		t.Errorf("files %v, %v", files, err)
	}
	if !strings.Contains(errOut, "wrote "+filepath.Join(dir, "sample.csv")) {
		t.Errorf("%q", errOut)
	}
}

func TestErrors(t *testing.T) {
	for _, x := range []struct {
		args []string
		code int
		want string // on standard error
	}{
		{[]string{"run", "nothing"}, 2, "mihsim: there is no experiment \"nothing\"\n\"mihsim list\" shows those that there are\n"},
		{[]string{"run", "nothing", "--json"}, 2, `{"error":"there is no experiment \"nothing\"","hint":"\"mihsim list\" shows those that there are"}` + "\n"},
		{[]string{"run", "sample", "--runs", "-1"}, 2, "mihsim: --runs -1: want a number above 0\n\"mihsim help\" shows how to use it\n"},
		{[]string{"run"}, 2, "mihsim: accepts 1 arg(s), received 0\n\"mihsim help\" shows how to use it\n"},
		{[]string{"run", "sample", "--seed", "13"}, 1, "mihsim: run sample: unlucky\n"},
	} {
		code, out, errOut := call(t, x.args...)
		if code != x.code || out != "" || errOut != x.want {
			t.Errorf("%v: %d %q %q", x.args, code, out, errOut)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := call(t, "run", "sample", "--out", file, "--json")
	last := errOut[strings.LastIndex(strings.TrimSpace(errOut), "\n")+1:]
	var e struct{ Error string }
	if err := json.Unmarshal([]byte(last), &e); code != 1 || out != "" || err != nil || !strings.Contains(e.Error, "folder") {
		t.Errorf("%d %q %q %v", code, out, errOut, err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var o, e bytes.Buffer
	if code := Main(ctx, []experiment.Experiment{sample}, []string{"run", "sample", "--seed", "14"}, &o, &e); code != 1 || e.String() != "mihsim: interrupted\n" {
		t.Errorf("%d %q", code, e.String())
	}
}
