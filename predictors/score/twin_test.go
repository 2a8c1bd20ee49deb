package score_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"mihf.dev/predictors/level"
	"mihf.dev/predictors/score"
)

// traces returns the folder of real traces; the test is skipped where MIHF_TRACES names none.
func traces(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MIHF_TRACES")
	if dir == "" {
		t.Skip("MIHF_TRACES names no folder of traces")
	}
	return dir
}

// The accounting is that of the independent scorer that comes with the traces.
func TestTwin(t *testing.T) {
	dir := traces(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 to run the independent scorer")
	}
	for _, set := range []string{"wifi-laps", "wifi-roam", "lte-a", "drive-ping", "cell-1s"} {
		files, err := filepath.Glob(filepath.Join(dir, set, "*.csv.gz"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no traces of %s in %s", set, dir)
		}
		files = files[:min(2, len(files))]
		all := play(t, files)
		for h := range all[0].Horizons[:all[0].Judged] {
			policy := score.Fit(all, h) // an alarm that stands now and then
			for _, s := range all {
				s.Use(h, policy)
			}
		}
		name := filepath.Join(t.TempDir(), "alarms.csv")
		writeAlarms(t, name, all)
		out, err := exec.CommandContext(t.Context(), python, append([]string{filepath.Join(dir, "score.py"), name}, files...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		compare(t, set, score.Rows(all), out)
	}
}

func play(t *testing.T, files []string) []*score.Series {
	t.Helper()
	var list []score.Trace
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := score.Read(name, bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, tr...)
	}
	horizons := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second}
	var all []*score.Series
	for i := range list {
		all = append(all, score.Run(&list[i], level.New(), score.JudgeEither, horizons))
	}
	return all
}

func writeAlarms(t *testing.T, name string, all []*score.Series) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("file,t_s,horizon_s,probability\n")
	for _, s := range all {
		for h, horizon := range s.Horizons[:s.Judged] {
			for _, at := range s.Standing(h) {
				fmt.Fprintf(&b, "%s,%v,%v,1\n", s.Trace.Name, at, horizon.Seconds())
			}
		}
	}
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

var figure = regexp.MustCompile(`'(\w+)': ([\d.]+|nan)`)

func compare(t *testing.T, set string, rows []score.Row, out []byte) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(out))
	byHorizon := map[string]map[string]string{}
	for lines.Scan() {
		h, rest, _ := strings.Cut(lines.Text(), " ")
		m := map[string]string{}
		for _, x := range figure.FindAllStringSubmatch(rest, -1) {
			m[x[1]] = x[2]
		}
		byHorizon[h] = m
	}
	for _, r := range rows {
		want, ok := byHorizon[fmt.Sprintf("%.1f", r.HorizonS)]
		if !ok {
			if r.Precision != 0 || r.Recall != 0 {
				t.Errorf("%s: the other scorer says nothing of %g s", set, r.HorizonS)
			}
			continue // no alarm stood
		}
		check := func(name string, got float64, digits int) {
			if v := strconv.FormatFloat(got, 'f', digits, 64); !near(v, want[name], digits) {
				t.Errorf("%s, %g s: %s %s, the other scorer has %s", set, r.HorizonS, name, v, want[name])
			}
		}
		check("events", float64(r.Events), 0)
		check("precision", r.Precision, 3)
		check("recall", r.Recall, 3)
		check("f1", r.F1, 3)
		check("fa_per_h", r.FalseAlarmsPerH, 1)
		if r.LeadP50S != nil {
			check("lead_p50", *r.LeadP50S, 2)
			check("lead_p10", *r.LeadP10S, 2)
		}
	}
}

// near allows one in the last digit: the two round a tie each in its way.
func near(got, want string, digits int) bool {
	g, err1 := strconv.ParseFloat(got, 64)
	w, err2 := strconv.ParseFloat(want, 64)
	unit := 1.0
	for range digits {
		unit /= 10
	}
	d := g - w
	return err1 == nil && err2 == nil && d < 1.01*unit && d > -1.01*unit
}
