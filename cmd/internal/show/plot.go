package show

import (
	"math"
	"strings"
)

var blocks = []rune("▁▂▃▄▅▆▇█")

// Sparkline draws one cell a value, the lowest block at low and the highest at high. What
// is not a number is a blank.
func Sparkline(values []float64, low, high float64) string {
	var b strings.Builder
	for _, v := range values {
		if math.IsNaN(v) {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(blocks[level(v, low, high, len(blocks))])
	}
	return b.String()
}

// level returns which of n equal parts of low to high holds v.
func level(v, low, high float64, n int) int {
	if !(high > low) {
		return 0
	}
	return min(max(int((v-low)/(high-low)*float64(n)), 0), n-1)
}

// Plot draws one column a value in rows lines, with eight levels a line, highest first.
func Plot(values []float64, low, high float64, rows int) []string {
	lines := make([]strings.Builder, rows)
	for _, v := range values {
		n := -1
		if !math.IsNaN(v) {
			n = level(v, low, high, rows*len(blocks))
		}
		for r := range rows {
			switch over := n - (rows-1-r)*len(blocks); {
			case n < 0 || over < 0:
				lines[r].WriteByte(' ')
			case over >= len(blocks):
				lines[r].WriteRune(blocks[len(blocks)-1])
			default:
				lines[r].WriteRune(blocks[over])
			}
		}
	}
	out := make([]string, rows)
	for i := range lines {
		out[i] = strings.TrimRight(lines[i].String(), " ")
	}
	return out
}

// Range returns the lowest and highest of the values, at least span apart and to whole
// tens; ok is false where there is none.
func Range(values []float64, span float64) (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) {
			low, high, ok = math.Min(low, v), math.Max(high, v), true
		}
	}
	if !ok {
		return 0, 0, false
	}
	if gap := span - (high - low); gap > 0 {
		low, high = low-gap/2, high+gap/2
	}
	return math.Floor(low/10) * 10, math.Ceil(high/10) * 10, true
}

// Resample returns n columns over the time from start to end: the mean of the samples
// that fall into each, and NaN where none does.
func Resample(at, values []float64, start, end float64, n int) []float64 {
	sums, counts := make([]float64, n), make([]int, n)
	for i, t := range at {
		c := int(math.Floor((t - start) / (end - start) * float64(n)))
		if t == end {
			c = n - 1
		}
		if c < 0 || c >= n || math.IsNaN(values[i]) {
			continue
		}
		sums[c] += values[i]
		counts[c]++
	}
	for i := range sums {
		if counts[i] == 0 {
			sums[i] = math.NaN()
			continue
		}
		sums[i] /= float64(counts[i])
	}
	return sums
}
