package mihf

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape shows arbitrary octets (an SSID, an interface name) as printable UTF-8.
// Backslash, control characters (C0, C1, DEL), invisible and bidirectional format
// characters, and octets that are not UTF-8 become \xNN, octet by octet, so that no
// name can steer a terminal and two different names never give the same text (letters
// of different scripts may still look alike). [Unescape] reverses it.
func Escape(b []byte) string {
	var s strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if (r == utf8.RuneError && n == 1) || r == '\\' || !unicode.IsPrint(r) || invisible(r) {
			for _, c := range b[:n] {
				fmt.Fprintf(&s, `\x%02x`, c)
			}
		} else {
			s.Write(b[:n])
		}
		b = b[n:]
	}
	return s.String()
}

// invisible reports whether r shows nothing although Unicode counts it as a letter, mark
// or symbol: fillers, joiners, variation selectors, the blank Braille pattern.
func invisible(r rune) bool {
	return r == '\u2800' || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// EscapeString is [Escape] for a string of arbitrary octets.
func EscapeString(s string) string { return Escape([]byte(s)) }

// Unescape returns the octets that [Escape] was given.
func Unescape(s string) ([]byte, error) {
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		if i+4 > len(s) || s[i+1] != 'x' {
			return nil, fmt.Errorf("escaped name %q: bad escape at offset %d", s, i)
		}
		c, err := strconv.ParseUint(s[i+2:i+4], 16, 8)
		if err != nil {
			return nil, fmt.Errorf("escaped name %q: bad escape at offset %d", s, i)
		}
		out = append(out, byte(c))
		i += 3
	}
	return out, nil
}
