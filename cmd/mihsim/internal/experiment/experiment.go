// Package experiment is what the experiments of mihsim have in common: how one is named and
// run, and the form of its result.
//
// # Guarantees
//
//   - The result depends on the seed and the number of runs alone, not on how many runs go on
//     at once ([Each]).
//   - A result as JSON is one object, {experiment, seed, runs, rows, claims}; a row is a flat
//     object whose fields keep their order.
package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// An Experiment reproduces a part of a paper on the bed.
type Experiment struct {
	Name  string
	Short string // a line for the list
	Runs  int    // of each case, when none are asked for: the full count
	Run   func(ctx context.Context, o Options) (*Result, error)
}

// Options say how an experiment is run.
type Options struct {
	Seed uint64
	Runs int // of each case, above 0
	// Progress, if set, is told how many of the parts are done. It is called by one goroutine
	// at a time.
	Progress func(done, total int)
}

// A Result is what an experiment found.
type Result struct {
	Experiment string  `json:"experiment"`
	Seed       uint64  `json:"seed"`
	Runs       int     `json:"runs"`
	Rows       []Row   `json:"rows"`
	Claims     []Claim `json:"claims"`
	Plots      []Plot  `json:"-"`
}

// A Claim is a statement of the paper, or a bar that was set, beside what came out.
type Claim struct {
	Name  string `json:"name"`
	Paper string `json:"paper"`
	Ours  string `json:"ours"`
	Holds bool   `json:"holds"`
	Note  string `json:"note"`
}

// A Field is a named value of a row: a string, a number, a bool, or nil for what is not known.
type Field struct {
	Name  string
	Value any
}

// A Row is a flat object whose fields keep their order.
type Row []Field

// MarshalJSON encodes the row as an object. A number that is none is null.
func (r Row) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range r {
		if i > 0 {
			b.WriteByte(',')
		}
		v := f.Value
		if x, ok := v.(float64); ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
			v = nil
		}
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, fmt.Errorf("name of a field: %w", err)
		}
		value, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// A Plot is a figure of lines, or of bars where Bars is set.
type Plot struct {
	Name  string // of its file, without ending
	Title string
	X, Y  string // what the axes show, with units
	LogX  bool
	LogY  bool
	Lines []Line
	Bars  []string // the names of groups, for each of which every line has one value
}

// A Line is a series of a plot.
type Line struct {
	Name   string
	Points []Point
	Dots   bool // points instead of a line
}

// A Point is a value of a line.
type Point struct{ X, Y float64 }

// Each calls f for every part from 0 to n-1, as many at once as there are processors, and tells
// the progress. It returns the first error, or that of ctx.
func Each(ctx context.Context, o Options, n int, f func(part int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex // guards the following
	done := 0
	for part := range n {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := f(part); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			if o.Progress != nil {
				o.Progress(done, n)
			}
			return nil
		})
	}
	return g.Wait()
}

// SeedOf returns the seed of run number run. Variants that are compared have the same.
func (o Options) SeedOf(run int) uint64 { return o.Seed*1_000_003 + uint64(run) }

// Mean returns the mean; NaN of nothing.
func Mean(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Round rounds to so many digits behind the point, for rows.
func Round(v float64, digits int) float64 {
	p := math.Pow(10, float64(digits))
	return math.Round(v*p) / p
}
