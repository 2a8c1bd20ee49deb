package show

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"

	"mihf.dev/mihf"
)

// Unknown stands for a value that is not known.
const Unknown = "–"

// Name shows a name of arbitrary octets.
func Name[T ~string](s T) string {
	if s == "" {
		return Unknown
	}
	return mihf.EscapeString(string(s))
}

// Text is [Name] for free text: what is empty stays empty.
func Text[T ~string](s T) string { return mihf.EscapeString(string(s)) }

// SSID shows the name of a network; one that is empty or not known as unknown.
func SSID(b []byte) string { return Name(string(b)) }

// Span shows a length of time with about two digits that matter: "320 ms", "1.9 s",
// "2m13s", "2h03m", "3d04h".
func Span(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	switch s := d.Round(time.Second); {
	case d < 100*time.Microsecond:
		return sign + "0 ms"
	case d < 10*time.Millisecond:
		return sign + strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64) + " ms"
	case d < 999500*time.Microsecond:
		return sign + strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) + " ms"
	case d < 59950*time.Millisecond:
		return sign + strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case s < time.Hour:
		return fmt.Sprintf("%s%dm%02ds", sign, int(s.Minutes()), int(s.Seconds())%60)
	case s < 48*time.Hour:
		return fmt.Sprintf("%s%dh%02dm", sign, int(s.Hours()), int(s.Minutes())%60)
	default:
		return fmt.Sprintf("%s%dd%02dh", sign, int(s.Hours())/24, int(s.Hours())%24)
	}
}

// OptSpan is [Span] for a time that may be unknown.
func OptSpan(d time.Duration, known bool) string {
	if !known {
		return Unknown
	}
	return Span(d)
}

// Number shows a number without needless digits.
func Number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return Unknown
	case a != 0 && (a < 0.001 || a >= 1e6):
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a < 1:
		return trimZeros(strconv.FormatFloat(v, 'f', 3, 64))
	default:
		return trimZeros(strconv.FormatFloat(v, 'f', 1, 64))
	}
}

func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// Value shows a parameter's value with its unit.
func Value(p mihf.Parameter, v float64) string {
	switch u := p.Unit(); u {
	case "":
		return Number(v)
	case "bit/s":
		return Rate(v)
	case "s":
		return Span(time.Duration(v * 1e9))
	default:
		return Number(v) + " " + u
	}
}

// Rate shows bits a second.
func Rate(bps float64) string {
	for _, u := range []struct {
		at   float64
		name string
	}{{1e9, "Gbit/s"}, {1e6, "Mbit/s"}, {1e3, "kbit/s"}} {
		if bps >= u.at {
			return Number(bps/u.at) + " " + u.name
		}
	}
	return Number(bps) + " bit/s"
}

// Probability shows a probability with two decimal places.
func Probability(p float64) string { return strconv.FormatFloat(p, 'f', 2, 64) }

// Address shows an address; one that is not set as unknown.
func Address(a netip.Addr) string {
	if !a.IsValid() {
		return Unknown
	}
	return mihf.EscapeString(a.String())
}

// Family names an address family.
func Family(ipv6 bool) string {
	if ipv6 {
		return "IPv6"
	}
	return "IPv4"
}

// Width returns how many cells of a terminal s takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	default:
		return 1
	}
}

// Pad fills s with blanks to w cells; a longer one stays as it is.
func Pad(s string, w int) string {
	if n := Width(s); n < w {
		return s + strings.Repeat(" ", w-n)
	}
	return s
}

// Fit cuts s to w cells, with "…" where something was cut off.
func Fit(s string, w int) string {
	if Width(s) <= w {
		return s
	}
	if w <= 0 {
		return ""
	}
	n := 0
	for i, r := range s {
		if n += runeWidth(r); n > w-1 {
			return s[:i] + "…"
		}
	}
	return s
}
