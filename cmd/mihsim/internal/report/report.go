// Package report writes the result of an experiment: tables in Markdown, rows in CSV, plots in
// SVG.
//
// # Guarantees
//
//   - The same result gives the same octets, the plots included.
//   - Rows with different fields come in tables of their own, in the order in which they begin.
//   - A file is written whole or not at all.
package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mihf.dev/cmd/mihsim/internal/experiment"
)

// Text shows a value of a row.
func Text(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return ""
		}
		return strconv.FormatFloat(x, 'f', -1, 64)
	default:
		return fmt.Sprint(x)
	}
}

// Markdown writes the tables and the claims.
func Markdown(w io.Writer, r *experiment.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nSeed %d, %d runs.\n", r.Experiment, r.Seed, r.Runs)
	for _, t := range tables(r.Rows) {
		b.WriteByte('\n')
		writeTable(&b, t)
	}
	if len(r.Claims) > 0 {
		b.WriteString("\n| claim | paper | ours | holds | note |\n|---|---|---|---|---|\n")
		for _, c := range r.Claims {
			holds := "no"
			if c.Holds {
				holds = "yes"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", cell(c.Name), cell(c.Paper), cell(c.Ours), holds, cell(c.Note))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	return nil
}

// cell keeps a text from ending its cell.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// A table is a run of rows with the same fields.
type table struct {
	names []string
	rows  []experiment.Row
}

func tables(rows []experiment.Row) (all []*table) {
	for _, r := range rows {
		names := namesOf(r)
		i := slices.IndexFunc(all, func(t *table) bool { return slices.Equal(t.names, names) })
		if i < 0 {
			i = len(all)
			all = append(all, &table{names: names})
		}
		all[i].rows = append(all[i].rows, r)
	}
	return all
}

func namesOf(r experiment.Row) []string {
	names := make([]string, len(r))
	for i, f := range r {
		names[i] = f.Name
	}
	return names
}

func writeTable(b *strings.Builder, t *table) {
	b.WriteString("| " + strings.Join(t.names, " | ") + " |\n|" + strings.Repeat("---|", len(t.names)) + "\n")
	for _, r := range t.rows {
		b.WriteByte('|')
		for _, f := range r {
			b.WriteString(" " + cell(Text(f.Value)) + " |")
		}
		b.WriteByte('\n')
	}
}

// CSV writes all rows under the union of their fields.
func CSV(w io.Writer, r *experiment.Result) error {
	var names []string
	for _, row := range r.Rows {
		for _, f := range row {
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	c := csv.NewWriter(w)
	_ = c.Write(names) // Error has it below
	for _, row := range r.Rows {
		line := make([]string, len(names))
		for _, f := range row {
			line[slices.Index(names, f.Name)] = Text(f.Value)
		}
		_ = c.Write(line)
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return fmt.Errorf("write the rows: %w", err)
	}
	return nil
}

// JSON writes the result as one object.
func JSON(w io.Writer, r *experiment.Result) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// Files writes NAME.md, NAME.csv, NAME.json and a NAME-PLOT.svg for each plot into a folder,
// which is made if it isn't there. It returns their paths.
func Files(dir string, r *experiment.Result) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder for the results: %w", err)
	}
	type file struct {
		name  string
		write func(io.Writer) error
	}
	files := []file{
		{r.Experiment + ".md", func(w io.Writer) error { return Markdown(w, r) }},
		{r.Experiment + ".csv", func(w io.Writer) error { return CSV(w, r) }},
		{r.Experiment + ".json", func(w io.Writer) error { return JSON(w, r) }},
	}
	for _, p := range r.Plots {
		files = append(files, file{r.Experiment + "-" + p.Name + ".svg", func(w io.Writer) error { return SVG(w, p) }})
	}
	var paths []string
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := whole(path, f.write); err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// whole writes a file beside its place and moves it there.
func whole(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already if all went well
	err = write(f)
	if c := f.Close(); err == nil {
		err = c
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
