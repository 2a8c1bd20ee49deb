package sensors_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"mihf.dev/sensors"
)

func TestMalformed(t *testing.T) {
	var out bytes.Buffer
	m := sensors.NewMalformed(slog.New(slog.NewTextHandler(&out, nil)))
	for _, text := range []string{"short", "short", "long", "short"} {
		m.Note(errors.New(text))
	}
	if n := bytes.Count(out.Bytes(), []byte("malformed message")); n != 3 || m.Count() != 4 {
		t.Errorf("%d logged of %d, want 3 of 4:\n%s", n, m.Count(), &out)
	}
	sensors.NewMalformed(nil).Note(errors.New("not logged"))
}
