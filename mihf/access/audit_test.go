package access_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
)

// "at most [MaxLines] lines a second through for each identity, counts the others, and says
// with the next line how many they were"
func TestAudit(t *testing.T) {
	var a access.Audit
	refuse := func(at time.Duration, who mihf.Caller, wantLine bool, wantSuppressed uint64) {
		t.Helper()
		if line, n := a.Refuse(mihf.Time(at), who.Identity()); line != wantLine || n != wantSuppressed {
			t.Errorf("at %v: line %v of %d, want %v of %d", at, line, n, wantLine, wantSuppressed)
		}
	}
	for i := range access.MaxLines {
		refuse(time.Duration(i), alice, true, 0)
	}
	for range 100 {
		refuse(time.Second-1, alice, false, 0)
	}
	refuse(time.Second-1, bob, true, 0)
	refuse(time.Second, alice, true, 100)
	refuse(time.Second, alice, true, 0)
	refuse(time.Hour, alice, true, 0)
}

// No second that begins with a line has more than MaxLines, and none is lost.
func TestAuditCountsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a access.Audit
		now, began, inSecond := mihf.Time(1), mihf.Time(0), 0
		refused, told, left := uint64(0), uint64(0), uint64(0)
		for range rapid.IntRange(1, 200).Draw(t, "refusals") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "ms")) * time.Millisecond)
			refused++
			line, suppressed := a.Refuse(now, alice.Identity())
			if !line {
				left++
				continue
			}
			if began == 0 || now.Sub(began) >= time.Second {
				began, inSecond = now, 0
			}
			inSecond++
			told += 1 + suppressed
			left -= suppressed
			if inSecond > access.MaxLines {
				t.Fatalf("%d lines in a second", inSecond)
			}
		}
		if told+left != refused {
			t.Errorf("%d told and %d left of %d", told, left, refused)
		}
	})
}

// "It keeps a bounded number of identities": those beyond share the lines of one, until the
// others have been quiet.
func TestAuditIsBounded(t *testing.T) {
	var a access.Audit
	const many = 1 << 14
	lines := 0
	flood := func(at time.Duration) {
		lines = 0
		for uid := range uint32(many) {
			if line, _ := a.Refuse(mihf.Time(at), user(uid).Identity()); line {
				lines++
			}
		}
	}
	flood(0)
	if lines > 1024+access.MaxLines {
		t.Errorf("%d lines at once", lines)
	}
	if size := testing.AllocsPerRun(1, func() { flood(time.Millisecond) }); size > 0 {
		t.Errorf("%v allocations for identities that there is no room for", size)
	}
	for uid := range uint32(100) {
		if line, _ := a.Refuse(mihf.Time(time.Minute), user(many+uid).Identity()); !line {
			t.Fatalf("no line for uid %d, although all have been quiet", many+uid)
		}
	}
}
