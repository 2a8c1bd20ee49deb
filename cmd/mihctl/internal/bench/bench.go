package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/cmd/mihctl/internal/privatebus"
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
	Missing    func(what error)  // told what cannot be measured here, and why; nil: nobody
	// Server is the command line that runs ServeMemory in a process of its own; it is given
	// the front and a folder as two arguments more. None: the memory is not measured.
	Server []string
	// Clients is the command line that runs ServeNeighbours in a process of its own; it is given
	// its three arguments more. None: the subscriber that stopped reading is left out.
	Clients []string
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
	if o.Missing == nil {
		o.Missing = func(error) {}
	}
}

// Report is what was measured. Values in _us are microseconds.
type Report struct {
	Machine Machine `json:"machine"`
	Fanout  Fanout  `json:"fanout"`
	GRPC    *Front  `json:"grpc"` // Freeze to a client on a unix socket
	NATS    *Front  `json:"nats"` // Freeze to a client on a loopback socket of the embedded server
	DBus    *Front  `json:"dbus"` // Freeze to a client on a private bus; null: there is no dbus-daemon

	// Options.All
	NATSInProcess *Front   `json:"nats_in_process,omitempty"` // Freeze to a client in the daemon's process
	Stalled       *Stalled `json:"stalled,omitempty"`
	Memory        *Memory  `json:"memory,omitempty"`      // of gRPC
	NATSMemory    *Memory  `json:"nats_memory,omitempty"` // of NATS, with the embedded server
	DBusMemory    *Memory  `json:"dbus_memory,omitempty"` // of D-Bus, without the bus
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

// desktops is how many times fewer subscribers a message bus has: they are one user's programs.
const desktops = 20

// part is one of the measurements.
type part struct {
	what    string
	measure func(ctx context.Context, o *Options) error
}

func (r *Report) parts(o *Options) []part {
	front := func(name string, open stage, to **Front) part {
		return part{"freeze over " + name, func(ctx context.Context, o *Options) (err error) {
			*to, err = over(ctx, o, open)
			return err
		}}
	}
	crowd := func(name, key string, subscribers int, to **Memory) part {
		return part{fmt.Sprintf("memory of %d subscribers over %s", subscribers, name), func(ctx context.Context, o *Options) (err error) {
			*to, err = memory(ctx, o, key, subscribers)
			return err
		}}
	}
	parts := []part{
		{"fan-out in process", func(ctx context.Context, o *Options) (err error) {
			r.Fanout, err = fanout(ctx, o)
			return err
		}},
		front("gRPC", overGRPC, &r.GRPC),
		front("NATS", overNATS, &r.NATS),
		front("D-Bus", overDBus, &r.DBus),
	}
	if !o.All {
		return parts
	}
	parts = append(parts, front("NATS in process", overNATSInProcess, &r.NATSInProcess))
	if len(o.Clients) > 0 {
		parts = append(parts, part{"a subscriber that stopped reading", func(ctx context.Context, o *Options) (err error) {
			r.Stalled, err = stalled(ctx, o)
			return err
		}})
	}
	if len(o.Server) > 0 {
		parts = append(parts, crowd("gRPC", "grpc", o.Crowd, &r.Memory), crowd("NATS", "nats", o.Crowd, &r.NATSMemory), crowd("D-Bus", "dbus", max(o.Crowd/desktops, 1), &r.DBusMemory))
	}
	return parts
}

// measure measures all parts; one that needs a program that is not here is left out.
func (r *Report) measure(ctx context.Context, o *Options) error {
	for _, p := range r.parts(o) {
		o.Progress(p.what)
		switch err := p.measure(ctx, o); {
		case errors.Is(err, privatebus.ErrAbsent):
			o.Missing(fmt.Errorf("%s: %w", p.what, err))
		case err != nil:
			return fmt.Errorf("%s: %w", p.what, err)
		}
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
