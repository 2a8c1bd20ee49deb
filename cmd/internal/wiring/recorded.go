package wiring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"mihf.dev/mihf/clock"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/recording"
	"mihf.dev/sensors"
	"mihf.dev/sensors/replay"
)

// recorded is the replay sensor on a file, which is open while it runs. A file that cannot
// be opened any more is an error of Run; what is wrong further in is told by the sensor's
// condition.
type recorded struct {
	file  string
	clock clock.Clock
}

func (*recorded) Name() string { return replay.Name }

func (r *recorded) Run(ctx context.Context, emit sensors.Emit) error {
	src, f, err := openRecording(r.file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // was only read
	return replay.New(src, r.clock, 0).Run(ctx, emit)
}

func checkRecording(file string) error {
	_, f, err := openRecording(file)
	if err != nil {
		return err
	}
	return f.Close()
}

// openRecording opens the file of sensors.replay.file, up to its header. Pipes and devices
// are refused: to open one may take forever.
func openRecording(file string) (recording.Source, io.Closer, error) {
	fail := func(err error) (recording.Source, io.Closer, error) {
		return nil, nil, config.At("sensors.replay.file", err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return fail(err)
	}
	if !info.Mode().IsRegular() {
		return fail(fmt.Errorf("%s: is not a regular file", file))
	}
	f, err := os.Open(file) //nolint:gosec // the operator's own choice
	if err != nil {
		return fail(err)
	}
	src, err := recording.Open(f, "")
	if err != nil {
		return fail(errors.Join(fmt.Errorf("%s: %w", file, err), f.Close()))
	}
	return src, f, nil
}
