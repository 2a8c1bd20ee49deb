// Package archtest guards the shape of the module: which package may import
// which, that every package says what it is, that files and functions stay
// readable, and that every dependency has a stated reason.
//
// The tests parse the files themselves. Asked through "go list", a subprocess that
// the test cache doesn't see into, they would go on passing after a violation.
package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "mihf.dev/"
	root   = "../.."
)

// pure matches the packages of the core without I/O, goroutine, lock or clock.
const pure = `mihf/(access|engine|hint|info|lci|linkstate|queue|recording|route|session)`

// layers says what a package may import of this module, other than its own
// subtree and its parents. The first row whose pkg matches applies; an empty may
// allows nothing.
var layers = []struct{ pkg, may, why string }{
	{`mihf`, ``, "the vocabulary stands on the standard library alone"},
	{`mihf/session`, `mihf|mihf/queue|proto/wire21`, "the session is pure and speaks 802.21 frames"},
	{pure, `mihf|` + pure, "the pure core knows nothing outside itself"},
	{`mihf/front/wirefront`, `mihf|mihf/(access|front|metrics|clock|session)|proto/.*`, "a front reaches the broker through mihf/front"},
	{`mihf/front(/.*)?`, `mihf|mihf/(access|busconn|front|metrics|clock)|mihf/front/(broadcast|encoded|patient|pseudonym|service)|proto/.*`, "a front reaches the broker through mihf/front"},
	{`mihf/(busconn|daemon|metrics|clock|config)`, `mihf|mihf/(metrics|clock|config)`, "the frame of the daemon knows none of its parts"},
	{`mihf/.*`, `mihf|` + pure + `|mihf/(broker|clock|command|config|metrics)`, "the core knows no sensor, predictor, transport, front or client"},
	{`predictors/score`, `mihf|mihf/recording|predictors`, "scoring reads recordings"},
	{`predictors(/.*)?`, `mihf|predictors(/.*)?`, "predictors are pure"},
	{`sensors(/.*)?`, `mihf|mihf/(busconn|clock|metrics|recording)|sensors`, "a sensor knows the vocabulary and no other sensor"},
	{`transports/dccp(/.*)?`, `mihf|mihf/(clock|metrics)|transports/(tfrc|nce|dccp/dccpnet)`, "dccp stands on tfrc and nce, its carriers on dccpnet"},
	{`transports(/.*)?`, `mihf|mihf/(clock|metrics)`, "a transport knows no broker and no other transport"},
	{`proto(/.*)?`, `mihf|proto(/.*)?`, "the wire formats know only the vocabulary"},
	{`clients/mihwire`, `mihf|mihf/(clock|session)|proto/.*|clients`, "a client sees nothing of the server"},
	{`clients(/.*)?`, `mihf|mihf/(busconn|clock)|proto/.*|clients(/.*)?`, "a client sees nothing of the server"},
	{`(cmd|integration)(/.*)?`, `.*`, "everything is wired here"},
}

func TestImportDirection(t *testing.T) {
	for _, s := range parse(t) {
		if s.test {
			continue
		}
		may, why, ok := layerOf(s.dir)
		if !ok {
			t.Errorf("%s belongs to no layer: add %s to the table", s.path, s.dir)
			continue
		}
		for _, imp := range s.imports(t) {
			in, ours := strings.CutPrefix(imp, module)
			if ours && !sameSubtree(s.dir, in) && !may.MatchString(in) {
				t.Errorf("%s imports %s: %s", s.path, in, why)
			}
		}
	}
}

func layerOf(dir string) (may *regexp.Regexp, why string, ok bool) {
	whole := func(re string) *regexp.Regexp { return regexp.MustCompile(`^(` + re + `)$`) }
	for _, l := range layers {
		if whole(l.pkg).MatchString(dir) {
			return whole(l.may), l.why, true
		}
	}
	return nil, "", false
}

// sameSubtree reports whether in is dir, one of its parents, or below it. What is
// below the vocabulary is the core and doesn't count as its own.
func sameSubtree(dir, in string) bool {
	return in == dir ||
		strings.HasPrefix(dir, in+"/") ||
		(dir != "mihf" && strings.HasPrefix(in, dir+"/"))
}

// A source is a parsed Go file of the module.
type source struct {
	path      string // for messages: relative to this directory
	dir       string // of its package, relative to the root, with slashes
	test      bool
	generated bool
	fset      *token.FileSet
	*ast.File
}

func (s source) imports(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, spec := range s.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatalf("%s: %v", s.path, err)
		}
		paths = append(paths, p)
	}
	return paths
}

// lines counts the lines from one position to another, both included.
func (s source) lines(from, to token.Pos) int {
	return s.fset.Position(to).Line - s.fset.Position(from).Line + 1
}

// parse reads every Go file of the module, but for testdata, dot-folders and build products.
func parse(t *testing.T) []source {
	t.Helper()
	var sources []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			n := d.Name()
			if path != root && (strings.HasPrefix(n, ".") || n == "testdata" || path == filepath.Join(root, "bin") || path == filepath.Join(root, "dist")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		sources = append(sources, source{
			path:      path,
			dir:       filepath.ToSlash(rel),
			test:      strings.HasSuffix(path, "_test.go"),
			generated: ast.IsGenerated(f),
			fset:      fset,
			File:      f,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sources
}
