package show

import "strings"

// Table aligns rows in columns two blanks apart. The first row is the heading. Nothing
// follows the last column's text.
func Table(rows [][]string) []string {
	var widths []int
	for _, r := range rows {
		for i, cell := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	lines := make([]string, 0, len(rows))
	for _, r := range rows {
		var b strings.Builder
		for i, cell := range r {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(Pad(cell, widths[i]))
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}
