package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// "a row is a flat object whose fields keep their order"
func TestRowJSON(t *testing.T) {
	b, err := json.Marshal(Row{{"z", 1.5}, {"a", "x"}, {"m", 3}, {"unknown", nil}, {"none", math.NaN()}, {"yes", true}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(`{"z":1.5,"a":"x","m":3,"unknown":null,"none":null,"yes":true}`, string(b)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if _, err := json.Marshal(Row{{"bad", func() {}}}); err == nil {
		t.Error("what JSON has no form for was encoded")
	}
}

func TestEach(t *testing.T) {
	var got [20]int
	var told []int
	o := Options{Progress: func(done, total int) {
		if total != len(got) {
			t.Errorf("total %d", total)
		}
		told = append(told, done)
	}}
	err := Each(t.Context(), o, len(got), func(part int) error {
		got[part]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for part, n := range got {
		if n != 1 || told[part] != part+1 {
			t.Errorf("part %d was done %d times; progress %v", part, n, told)
		}
	}
}

func TestEachFails(t *testing.T) {
	bad := errors.New("bad")
	if err := Each(t.Context(), Options{}, 9, func(part int) error {
		if part == 3 {
			return bad
		}
		return nil
	}); !errors.Is(err, bad) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Each(ctx, Options{}, 9, func(int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestSeeds(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(3) {
		for run := range 50 {
			s := Options{Seed: seed}.SeedOf(run)
			if seen[s] {
				t.Fatalf("seed %d, run %d: %d again", seed, run, s)
			}
			seen[s] = true
		}
	}
}

func TestMeanAndRound(t *testing.T) {
	if m := Mean([]float64{1, 2, 6}); m != 3 {
		t.Errorf("mean %v", m)
	}
	if !math.IsNaN(Mean(nil)) {
		t.Error("the mean of nothing is a number")
	}
	if r := Round(1.23456, 3); r != 1.235 {
		t.Errorf("rounded %v", r)
	}
}
