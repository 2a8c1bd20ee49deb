package archtest

import (
	"go/ast"
	"os"
	"slices"
	"strings"
	"testing"
)

// Where these are reached, a file is two things or a function does two things.
const (
	maxFileLines     = 600
	maxFunctionLines = 100
)

func TestPackagesHaveComments(t *testing.T) {
	documented := make(map[string]bool) // by directory
	for _, s := range parse(t) {
		documented[s.dir] = documented[s.dir] || strings.TrimSpace(s.Doc.Text()) != ""
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
}

func TestLengths(t *testing.T) {
	for _, s := range parse(t) {
		if s.test || s.generated {
			continue
		}
		if n := s.lines(s.FileStart, s.FileEnd-1); n > maxFileLines {
			t.Errorf("%s has %d lines, over %d", s.path, n, maxFileLines)
		}
		for _, decl := range s.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := s.lines(f.Pos(), f.End()); n > maxFunctionLines {
				t.Errorf("%s: %s has %d lines, over %d", s.path, f.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

// What the system offers is asked for through its interfaces, not through a
// program whose output somebody else formats.
func TestNoSubprocesses(t *testing.T) {
	for _, s := range parse(t) {
		if s.test || strings.HasPrefix(s.dir, "cmd/") || strings.HasPrefix(s.dir, "integration/") {
			continue
		}
		if slices.Contains(s.imports(t), "os/exec") {
			t.Errorf("%s imports os/exec", s.path)
		}
	}
}

func TestTopLevelFolders(t *testing.T) {
	known := []string{
		"mihf", "sensors", "predictors", "transports", "proto", "clients", "cmd", "integration", "docs",
		"bin", "dist", // build products, ignored by git
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(known, e.Name()) {
			t.Errorf("%s/ is none of the top-level folders %v", e.Name(), known)
		}
	}
}
