package bench

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Options say what to measure. Fields that are zero mean the default that they name.
type Options struct {
	All        bool              // also the subscriber that stopped reading, and the memory
	Rounds     int               // of each comparison; 5
	Events     int               // in a round of the fan-out; 4,000
	Messages   int               // in a round of a front; 2,000
	Flood      int               // events published without a pause in a round; 40,000
	Neighbours int               // of the subscriber that stopped reading; 49
	Filling    int               // events that block it first; 1,000
	Crowd      int               // subscribers whose memory is measured; 1,000
	Settle     time.Duration     // how long they stay; 5 s
	Progress   func(what string) // told what is being measured; nil: nobody
	// Server is the command line that runs ServeMemory in a process of its own; it is given
	// the socket's path as one argument more. None: the memory is not measured.
	Server []string
}

func (o *Options) setDefaults() {
	for _, d := range []struct {
		v *int
		n int
	}{{&o.Rounds, 5}, {&o.Events, 4000}, {&o.Messages, 2000}, {&o.Crowd, 1000}, {&o.Flood, 40_000}, {&o.Neighbours, 49}, {&o.Filling, 1000}} {
		if *d.v <= 0 {
			*d.v = d.n
		}
	}
	if o.Settle <= 0 {
		o.Settle = 5 * time.Second
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// Report is what was measured. Values in _us are microseconds.
type Report struct {
	Machine Machine  `json:"machine"`
	Fanout  Fanout   `json:"fanout"`
	GRPC    *Front   `json:"grpc"`              // Freeze to a client on a unix socket
	Stalled *Stalled `json:"stalled,omitempty"` // Options.All
	Memory  *Memory  `json:"memory,omitempty"`  // Options.All
}

// Machine is where it was measured.
type Machine struct {
	CPU        string    `json:"cpu"`
	Processors int       `json:"processors"`
	Kernel     string    `json:"kernel"`
	Go         string    `json:"go"`
	At         time.Time `json:"at"`
	Seconds    float64   `json:"seconds"` // how long all took
}

// Run measures. It ends early with ctx's reason.
func Run(ctx context.Context, o Options) (*Report, error) {
	o.setDefaults()
	begin := time.Now()
	r := &Report{Machine: machine()}
	if err := r.measure(ctx, &o); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	r.Machine.Seconds = round(time.Since(begin).Seconds(), 1)
	return r, nil
}

func (r *Report) measure(ctx context.Context, o *Options) (err error) {
	o.Progress("fan-out in process")
	if r.Fanout, err = fanout(ctx, o); err != nil {
		return fmt.Errorf("fan-out: %w", err)
	}
	o.Progress("freeze over gRPC")
	if r.GRPC, err = over(ctx, o, overGRPC); err != nil {
		return fmt.Errorf("gRPC: %w", err)
	}
	if !o.All {
		return nil
	}
	o.Progress("a subscriber that stopped reading")
	if r.Stalled, err = stalled(ctx, o); err != nil {
		return fmt.Errorf("stalled subscriber: %w", err)
	}
	if len(o.Server) == 0 {
		return nil
	}
	o.Progress(fmt.Sprintf("memory of %d subscribers", o.Crowd))
	if r.Memory, err = memory(ctx, o); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return nil
}

func machine() Machine {
	m := Machine{Processors: runtime.GOMAXPROCS(0), Go: runtime.Version(), At: time.Now().UTC().Truncate(time.Second)}
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	m.CPU = "unknown"
	for line := range strings.Lines(readFile("/proc/cpuinfo")) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}
