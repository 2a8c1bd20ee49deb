package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/reports.md names tests that exist, and its rows are sorted by id.
func TestReports(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "reports.md"))
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	for _, s := range parse(t) {
		if !s.test {
			continue
		}
		for _, d := range s.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				exists[f.Name.Name] = true
			}
		}
	}
	for _, name := range regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w*`).FindAllString(string(text), -1) {
		if !exists[name] {
			t.Errorf("%s does not exist", name)
		}
	}
	var ids []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([A-Z]+\d+) \|`).FindAllStringSubmatch(string(text), -1) {
		ids = append(ids, m[1])
	}
	if len(ids) == 0 || !slices.IsSorted(ids) {
		t.Errorf("rows are not sorted by id: %s", strings.Join(ids, " "))
	}
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("an id has two rows: %s", strings.Join(ids, " "))
	}
}
