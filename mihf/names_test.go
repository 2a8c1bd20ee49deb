package mihf_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

// checkEscaped fails unless the text is safe to print and gives the octets back.
func checkEscaped(t interface{ Fatalf(string, ...any) }, b []byte) {
	s := mihf.Escape(b)
	if !utf8.ValidString(s) {
		t.Fatalf("%q is not UTF-8", s)
	}
	for _, r := range s {
		if !unicode.IsPrint(r) || unicode.Is(unicode.Bidi_Control, r) ||
			unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r) {
			t.Fatalf("%q shows %U raw", b, r)
		}
	}
	back, err := mihf.Unescape(s)
	if err != nil || !bytes.Equal(back, b) {
		t.Fatalf("%q became %q and then %q, %v", b, s, back, err)
	}
}

var hostile = []string{
	"", "cafe", `back\slash`, `\x41`, "\x1b[2J", "\x1b]52;c;\x07", "\b\r\n\t\x7f", "\u0085\u009b31m", "\u202Eevil\u2066", "caf\xe9",
	"\xc4\xe3\xba\xc3", "\U0001F9CA", "F09FA78A", "\u200b\u3164\u115f\ufe0f\u2800\U000E0001", "\xff\xfe0", "x*.>", "eth0.10",
}

func TestEscapeShowsNothingRaw(t *testing.T) {
	for _, s := range hostile {
		checkEscaped(t, []byte(s))
	}
	var runes []rune // of the planes that have characters, but the ideographs
	for r := range rune(0x3400) {
		runes = append(runes, r)
	}
	for _, span := range [][2]rune{{0xd7b0, 0x20000}, {0xe0000, 0xe1000}, {unicode.MaxRune - 3, unicode.MaxRune + 1}} {
		for r := span[0]; r < span[1]; r++ {
			runes = append(runes, r)
		}
	}
	for _, r := range runes {
		if utf8.ValidRune(r) {
			checkEscaped(t, utf8.AppendRune(nil, r))
		}
	}
	if got := mihf.EscapeString("wlan\x1b0"); got != `wlan\x1b0` {
		t.Errorf("%s", got)
	}
}

// Two different SSIDs never compare equal in their text form.
func TestEscapeIsInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 32)
		x, y := b.Draw(t, "x"), b.Draw(t, "y")
		if !bytes.Equal(x, y) && mihf.Escape(x) == mihf.Escape(y) {
			t.Fatalf("%q and %q give %q", x, y, mihf.Escape(x))
		}
	})
}

func TestUnescapeRefuses(t *testing.T) {
	for _, s := range []string{`\`, `\x`, `\x1`, `\x 1`, `\x1 `, `\x+1`, `\xg0`, `\y41`, `\x_1`, `ab\x4`} {
		if b, err := mihf.Unescape(s); err == nil {
			t.Errorf("Unescape(%q) = %q", s, b)
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range hostile {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkEscaped(t, b) })
}

func FuzzUnescape(f *testing.F) {
	for _, s := range []string{`\x41`, `\x 1`, `a\`, "plain"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if b, err := mihf.Unescape(s); err == nil {
			checkEscaped(t, b)
		}
	})
}

func TestLinkID(t *testing.T) {
	id := mihf.NewLinkID(mihf.LinkWiFi, "02:00:00:00:00:01")
	if !id.Valid() || id.Type() != mihf.LinkWiFi || id != mihf.NewLinkID(mihf.LinkWiFi, "02:00:00:00:00:01") {
		t.Errorf("%q", id)
	}
	if id == mihf.NewLinkID(mihf.LinkWiFi, "02:00:00:00:00:02") {
		t.Error("two devices with one id")
	}
	for _, s := range []mihf.LinkID{
		"", "wifi", "wifi-", "wifi-1234567", "wifi-123456789", "wifi-3FA9C01D", "wlan-3fa9c01d", "-3fa9c01d", "wifi-+fa9c01d",
		"wifi-3fa9c0 d", "wifi_3fa9c01d", "wifi-3fa9-c01",
	} {
		if s.Valid() {
			t.Errorf("%q is valid", string(s))
		}
	}
	if mihf.LinkID("").Type() != mihf.LinkOther {
		t.Error("no id has a type")
	}
}

func FuzzIDs(f *testing.F) {
	for _, s := range []string{"", "00000001", "0000000g", "3fa9c01d-17", "3fa9c01d-", "-1", "wifi-3fa9c01d", "00000000-0", "3fa9c01d-18446744073709551616"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if b, err := mihf.ParseBootID(s); err == nil {
			if again, err := mihf.ParseBootID(b.String()); err != nil || again != b {
				t.Fatalf("boot %q: %v, then %v, %v", s, b, again, err)
			}
		}
		if p, err := mihf.ParsePredictionID(s); err == nil {
			if again, err := mihf.ParsePredictionID(p.String()); err != nil || again != p {
				t.Fatalf("prediction %q: %v, then %v, %v", s, p, again, err)
			}
		}
		if id := mihf.LinkID(s); id.Valid() && (len(s) < 10 || id.Type().String()+"-"+s[len(s)-8:] != s) {
			t.Fatalf("link %q is valid", s)
		}
	})
}

func TestPredictionID(t *testing.T) {
	p := mihf.PredictionID{Boot: 0x3fa9c01d, N: 17}
	if p.String() != "3fa9c01d-17" || p.IsZero() || (mihf.PredictionID{}).String() != "" {
		t.Errorf("%v", p)
	}
	for _, s := range []string{"3fa9c01d", "3fa9c01d-", "3fa9c01d-x", "3fa9c01-1", "-1"} {
		if got, err := mihf.ParsePredictionID(s); err == nil {
			t.Errorf("ParsePredictionID(%q) = %v", s, got)
		}
	}
	// An error goes to the log and back to whoever asked: it does not repeat all that it got.
	for _, s := range []string{strings.Repeat("x", 60000), "-" + strings.Repeat("1", 60000)} {
		if _, err := mihf.ParsePredictionID(s); err == nil || len(err.Error()) > 200 {
			t.Errorf("error of %d octets for an id of %d", len(err.Error()), len(s))
		}
	}
}
