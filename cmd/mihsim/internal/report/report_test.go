package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/cmd/mihsim/internal/experiment"
)

func result() *experiment.Result {
	return &experiment.Result{
		Experiment: "sample", Seed: 7, Runs: 2,
		Rows: []experiment.Row{
			{{Name: "table", Value: "1"}, {Name: "x", Value: 1.5}},
			{{Name: "from", Value: "a|b"}, {Name: "x", Value: math.NaN()}},
			{{Name: "table", Value: "1"}, {Name: "x", Value: 2e6}},
		},
		Claims: []experiment.Claim{{Name: "c", Paper: "p", Ours: "o", Holds: true, Note: "n"}, {Name: "d"}},
		Plots: []experiment.Plot{
			{Name: "lines", Title: "Lines", X: "s", Y: "bit/s", Lines: []experiment.Line{
				{Name: "a", Points: []experiment.Point{{X: 0, Y: 1}, {X: 1, Y: 3}}},
				{Name: "b", Dots: true, Points: []experiment.Point{{X: 0, Y: 2}, {X: 1, Y: math.NaN()}}},
			}},
			{Name: "log", LogX: true, LogY: true, Lines: []experiment.Line{{Name: "a", Points: []experiment.Point{{X: 0, Y: 0}, {X: 1, Y: 10}, {X: 10, Y: 1000}}}}},
			{Name: "bars", LogY: true, Bars: []string{"one", "two"}, Lines: []experiment.Line{
				{Name: "a", Points: []experiment.Point{{Y: 100}, {Y: 0}}}, {Name: "b", Points: []experiment.Point{{Y: 5}}},
			}},
		},
	}
}

// "Rows with different fields come in tables of their own, in the order in which they begin."
func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(&b, result()); err != nil {
		t.Fatal(err)
	}
	want := `# sample

Seed 7, 2 runs.

| table | x |
|---|---|
| 1 | 1.5 |
| 1 | 2000000 |

| from | x |
|---|---|
| a\|b |  |

| claim | paper | ours | holds | note |
|---|---|---|---|---|
| c | p | o | yes | n |
| d |  |  | no |  |
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	if err := CSV(&b, result()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("table,x,from\n1,1.5,\n,,a|b\n1,2000000,\n", b.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, result()); err != nil {
		t.Fatal(err)
	}
	want := `{"experiment":"sample","seed":7,"runs":2,"rows":[{"table":"1","x":1.5},{"from":"a|b","x":null},{"table":"1","x":2000000}],` +
		`"claims":[{"name":"c","paper":"p","ours":"o","holds":true,"note":"n"},{"name":"d","paper":"","ours":"","holds":false,"note":""}]}` + "\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// "The same result gives the same octets, the plots included."
func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	paths, err := Files(dir, result())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	first := map[string][]byte{}
	for _, p := range paths {
		names = append(names, filepath.Base(p))
		if first[p], err = os.ReadFile(p); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"sample.md", "sample.csv", "sample.json", "sample-lines.svg", "sample-log.svg", "sample-bars.svg"}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if _, err := Files(dir, result()); err != nil {
		t.Fatal(err)
	}
	for p, b := range first {
		again, err := os.ReadFile(p)
		if err != nil || !bytes.Equal(b, again) {
			t.Errorf("%s differs the second time: %v", p, err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != len(want) {
		t.Errorf("%d files are there: %v, %v", len(left), left, err)
	}
}

func TestSVG(t *testing.T) {
	for _, p := range result().Plots {
		var b bytes.Buffer
		if err := SVG(&b, p); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(bytes.NewReader(b.Bytes()))
		elements := 0
		for {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", p.Name, err)
			}
			if _, ok := tok.(xml.StartElement); ok {
				elements++
			}
		}
		if elements < 10 || !strings.Contains(b.String(), p.Title) {
			t.Errorf("%s: %d elements", p.Name, elements)
		}
		for _, l := range p.Lines {
			if !strings.Contains(b.String(), ">"+l.Name+"<") {
				t.Errorf("%s: no legend for %q", p.Name, l.Name)
			}
		}
	}
}

// "A file is written whole or not at all."
func TestWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := errors.New("bad")
	err := whole(path, func(w io.Writer) error {
		_, _ = w.Write([]byte("half"))
		return bad
	})
	if !errors.Is(err, bad) {
		t.Errorf("error %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "before" {
		t.Errorf("the file is %q", b)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left over: %v", left)
	}
}
