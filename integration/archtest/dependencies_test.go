package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	requireLine = regexp.MustCompile(`(?m)^(?:require )?\s*([^\s()]+) (v\S+)( // indirect)?$`)
	toolLine    = regexp.MustCompile(`(?m)^tool (\S+)$`)
	// A row of docs/dependencies.md: | `module` | version | reason |
	dependencyRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (v[^ |]+) \\| (.+) \\|$")
)

type requirement struct {
	module, version string
	direct          bool
}

// TestDependenciesAreExplained checks docs/dependencies.md against go.mod and the
// tools' modules, in both directions.
func TestDependenciesAreExplained(t *testing.T) {
	explained := make(map[string]string) // module to version
	for _, row := range dependencyRow.FindAllStringSubmatch(read(t, "docs/dependencies.md"), -1) {
		explained[row[1]] = row[2]
	}

	known := make(map[string]bool)
	check := func(file string, r requirement) {
		known[r.module] = true
		switch version, ok := explained[r.module]; {
		case !ok:
			t.Errorf("docs/dependencies.md has no row for %s %s (%s)", r.module, r.version, file)
		case version != r.version:
			t.Errorf("docs/dependencies.md says %s %s; %s says %s", r.module, version, file, r.version)
		}
	}
	for _, r := range requirements(t, "go.mod") {
		if r.direct {
			check("go.mod", r)
		}
	}
	tools, err := filepath.Glob(filepath.Join(root, ".tools", "*", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tools {
		file := strings.TrimPrefix(path, root+"/")
		for _, tool := range toolLine.FindAllStringSubmatch(read(t, file), -1) {
			if r, ok := providerOf(tool[1], requirements(t, file)); ok {
				check(file, r)
			} else {
				t.Errorf("%s: no requirement has the tool %s", file, tool[1])
			}
		}
	}

	for module := range explained {
		if !known[module] {
			t.Errorf("docs/dependencies.md explains %s, which nothing requires directly", module)
		}
	}
}

func requirements(t *testing.T, file string) []requirement {
	t.Helper()
	var all []requirement
	for _, m := range requireLine.FindAllStringSubmatch(read(t, file), -1) {
		all = append(all, requirement{module: m[1], version: m[2], direct: m[3] == ""})
	}
	return all
}

// providerOf finds the module that has the package: the one with the longest matching path.
func providerOf(pkg string, all []requirement) (found requirement, ok bool) {
	for _, r := range all {
		if (pkg == r.module || strings.HasPrefix(pkg, r.module+"/")) && len(r.module) > len(found.module) {
			found, ok = r, true
		}
	}
	return found, ok
}

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
