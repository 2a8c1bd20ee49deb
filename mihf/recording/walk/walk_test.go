package walk_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/recording/walk"
)

var update = flag.Bool("update", false, "write walk.jsonl anew")

// "The file in this folder is its output."
func TestFileIsCurrent(t *testing.T) {
	var b bytes.Buffer
	if err := walk.Generate(&b, walk.Seed); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("walk.jsonl", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile("walk.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, b.Bytes()) {
		t.Error("walk.jsonl is not what Generate makes; run this test with -update")
	}
}

// The recording can be read to its end, is in order, and holds each part of the story.
func TestStory(t *testing.T) {
	r := walk.Open()
	var o mihf.Observation
	seen := map[mihf.ObservationKind]int{}
	last := mihf.Time(0)
	for {
		err := r.Read(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if o.At < last {
			t.Fatalf("back in time at %v", o.At)
		}
		last = o.At
		seen[o.Kind]++
	}
	for kind, n := range map[mihf.ObservationKind]int{
		mihf.ObsLink: 5, mihf.ObsAssociation: 5, mihf.ObsEgress: 6, mihf.ObsScan: 2, mihf.ObsDetected: 1, mihf.ObsTruth: 1, mihf.ObsRadio: 560,
	} {
		if seen[kind] != n {
			t.Errorf("%d observations of kind %v, want %d", seen[kind], kind, n)
		}
	}
	if r.Refused() != 0 {
		t.Errorf("%d values refused", r.Refused())
	}
}
