package recording_test

import (
	"os"
	"strings"
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/recording"
)

// block returns the first block of a language in docs/recordings.md.
func block(t *testing.T, language string) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/recordings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "```"+language+"\n")
	text, _, end := strings.Cut(rest, "```")
	if !ok || !end {
		t.Fatalf("no block of %s in the document", language)
	}
	return text
}

// The documented example is a recording of every kind, and comes back as it stands.
func TestDocumentedExample(t *testing.T) {
	text := block(t, "jsonl")
	r, err := recording.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all := read(t, r)
	if got := string(write(t, r.Header(), recording.Base, all...)); got != text || r.Refused() > 0 {
		t.Errorf("written again it is\n%s", got)
	}
	seen := map[mihf.ObservationKind]bool{}
	for _, o := range all {
		seen[o.Kind] = true
	}
	for k := mihf.ObsLink; k <= mihf.ObsTruth; k++ {
		if !seen[k] {
			t.Errorf("the example has no line of kind %v", k)
		}
	}
}

func TestDocumentedTrace(t *testing.T) {
	all, err := recording.ImportTrace(strings.NewReader(block(t, "csv")), "")
	if err != nil || len(all) != 6 {
		t.Errorf("%d observations, %v", len(all), err)
	}
}

// Every parameter is documented by its name.
func TestDocumentedParameters(t *testing.T) {
	b, err := os.ReadFile("../../docs/recordings.md")
	if err != nil {
		t.Fatal(err)
	}
	for p := range mihf.NumParameters {
		if name := "`" + mihf.Parameter(p).String() + "`"; !strings.Contains(string(b), name) {
			t.Errorf("the document does not name %s", name)
		}
	}
}
