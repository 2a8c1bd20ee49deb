package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/reports.md has a row a kind, in the order of the ids, and names only tests that exist.
func TestReports(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reports.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := testNames(t)
	var ids []string
	row := regexp.MustCompile(`^\| ([A-Z]\d\d) \| [^|]+\| ([^|]*)\| ([^|]*)\|$`)
	name := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]*)(?:/[^`]*)?`")
	for line := range strings.Lines(string(page)) {
		m := row.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		ids = append(ids, m[1])
		if strings.TrimSpace(m[2]+m[3]) == "" {
			t.Errorf("%s has neither a test nor a reason", m[1])
		}
		for _, named := range name.FindAllStringSubmatch(m[2], -1) {
			if !known[named[1]] {
				t.Errorf("%s names %s, which does not exist", m[1], named[1])
			}
		}
	}
	if len(ids) < 60 || !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("%d rows, not each id once and in order: %v", len(ids), ids)
	}
}

// testNames are the tests and fuzz targets of the module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
