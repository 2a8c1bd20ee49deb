package show

import "strings"

// Wrap breaks a line at blanks so that it fits into width cells; what follows the first
// break begins below cell indent. A word that is longer than a line is left whole. A width
// that leaves no room behind indent breaks nothing.
func Wrap(s string, indent, width int) string {
	if width-indent < 20 {
		return s
	}
	var b strings.Builder
	for first := true; ; first = false {
		room := width
		if !first {
			b.WriteString("\n" + strings.Repeat(" ", indent))
			room -= indent
		}
		head, tail := split(s, room)
		b.WriteString(head)
		if tail == "" {
			return b.String()
		}
		s = tail
	}
}

// split cuts s at the last blank before or behind w cells, else at the first blank.
func split(s string, w int) (head, tail string) {
	n, cut := 0, -1
	for i, r := range s {
		if r == ' ' && strings.TrimLeft(s[:i], " ") != "" {
			cut = i
		}
		if n += runeWidth(r); n > w && cut >= 0 {
			return strings.TrimRight(s[:cut], " "), strings.TrimLeft(s[cut:], " ")
		}
	}
	return s, ""
}
