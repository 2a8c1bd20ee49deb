package bench

import (
	"math"
	"os"
	"slices"
	"time"
)

// base is what stamps count from.
var base = time.Now()

// stamp returns the time in nanoseconds, as cheaply as it can be had.
func stamp() int64 { return int64(time.Since(base)) }

// quantile returns a quantile of what was measured, in microseconds; it sorts the values.
func quantile(ns []int64, q float64) float64 {
	if len(ns) == 0 {
		return math.NaN()
	}
	slices.Sort(ns)
	return float64(ns[min(int(q*float64(len(ns))), len(ns)-1)]) / 1e3
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// ratios returns the median of a[i]/b[i].
func ratios(a, b []float64) float64 {
	r := make([]float64, len(a))
	for i := range a {
		r[i] = a[i] / b[i]
	}
	return median(r)
}

func round(v float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(v*p) / p
}

// readFile returns a file of /proc; "" if it cannot be read.
func readFile(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(b)
}
