package show_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mihf.dev/cmd/internal/show"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		s             string
		indent, width int
		want          string
	}{
		{"fits in one line", 2, 30, "fits in one line"},
		{"fits to the last cell of one", 2, 28, "fits to the last cell of one"},
		{"breaks where the last word ends", 2, 28, "breaks where the last word\n  ends"},
		{"ends  where a → column of blanks is, and goes on", 4, 26, "ends  where a → column of\n    blanks is, and goes on"},
		{"averyverylongwordthatfitsnowhere then more", 2, 22, "averyverylongwordthatfitsnowhere\n  then more"},
		{"  averyverylongwordbehindblanks more", 2, 22, "  averyverylongwordbehindblanks\n  more"},
		{"no room behind the indent", 20, 21, "no room behind the indent"},
	} {
		if got := show.Wrap(c.s, c.indent, c.width); got != c.want {
			t.Errorf("Wrap(%q, %d, %d) = %q, want %q", c.s, c.indent, c.width, got, c.want)
		}
	}
}

// No word is lost, and no line with more than one word is too long.
func TestWrapKeepsWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[a-z→]{1,12}( {1,3}[a-z→]{1,30}){0,20}`).Draw(t, "s")
		width := rapid.IntRange(24, 60).Draw(t, "width")
		got := show.Wrap(s, 4, width)
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(s), " ") {
			t.Fatalf("%q became %q", s, got)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if show.Width(line) > width && len(strings.Fields(line)) > 1 {
				t.Fatalf("line %q is longer than %d", line, width)
			}
		}
	})
}
