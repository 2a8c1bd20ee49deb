package cli

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	"mihf.dev/mihf/recording"
)

func (a *app) recordCommand() *cobra.Command {
	var limit time.Duration
	cmd := &cobra.Command{
		Use: "record FILE", Short: "Write what the sensors see to a file, until interrupted",
		Long: "record writes the state and then each observation to a recording, which \"mihctl replay\" plays.\n" +
			"FILE is overwritten, unless the daemon refuses; a name that ends in .gz is compressed; - is standard\n" +
			"output. What was missed because the file or this program was slow is counted and said at the end.",
		Args: wants("FILE"),
	}
	cmd.Flags().DurationVar(&limit, "for", 0, "end after so long (default: when interrupted)")
	cmd.RunE = a.with(func(ctx context.Context, c clients.Client, args []string) error {
		if limit < 0 {
			return usagef("--for %v: want a time above 0", limit)
		}
		return a.record(ctx, c, args[0], limit)
	})
	return cmd
}

// recorded is the result of record with --json.
type recorded struct {
	File         string `json:"file"`
	Observations uint64 `json:"observations"`
	Lost         uint64 `json:"lost"`
}

func (a *app) record(ctx context.Context, c clients.Client, name string, limit time.Duration) error {
	snap, err := ask(ctx, a, c.Snapshot)
	if err != nil {
		return err
	}
	if err := writable(name); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if name == "-" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		stop := a.watchReader(cancel)
		defer stop()
	}
	f := &recordFile{create: func() (io.WriteCloser, error) { return a.create(name) }, snap: snap}
	lost, err := a.writeRecording(ctx, c, f, limit)
	if err := errors.Join(err, f.close()); err != nil {
		return fmt.Errorf("record to %s: %w", name, err)
	}
	result := recorded{File: name, Observations: f.written, Lost: lost}
	switch {
	case name == "-":
		return nil
	case a.json:
		return a.printValue(result)
	default:
		return a.print(fmt.Sprintf("%d observations in %s, %d lost", result.Observations, mihf.EscapeString(name), result.Lost))
	}
}

func (a *app) writeRecording(ctx context.Context, c clients.Client, f *recordFile, limit time.Duration) (lost uint64, err error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	lost, err = c.Record(ctx, f.write)
	if err != nil && ctx.Err() == nil {
		return lost, a.explained(ctx, err)
	}
	return lost, f.begin()
}

// recordFile is a recording that is begun with the first observation: a broker that refuses
// to be recorded leaves the file as it was.
type recordFile struct {
	create  func() (io.WriteCloser, error)
	snap    *mihf.Snapshot // goes first
	f       io.WriteCloser // nil: not begun
	w       *recording.Writer
	written uint64
}

// begin creates the file and writes the state, unless that was done.
func (r *recordFile) begin() (err error) {
	if r.f != nil {
		return nil
	}
	if r.f, err = r.create(); err != nil {
		return err
	}
	if r.w, err = recording.NewWriter(r.f, header(r.snap), r.snap.At); err != nil {
		return err
	}
	for _, o := range initial(r.snap) {
		if err := r.write(&o); err != nil {
			return err
		}
	}
	return nil
}

func (r *recordFile) write(o *mihf.Observation) error {
	if err := r.begin(); err != nil {
		return err
	}
	r.written++
	return r.w.Write(o)
}

func (r *recordFile) close() error {
	if r.f == nil {
		return nil
	}
	return r.f.Close()
}

// writable reports early what would keep us from writing the file, and changes nothing.
func writable(name string) error {
	if name == "-" {
		return nil
	}
	what, mode := name, uint32(unix.W_OK)
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		what, mode = filepath.Dir(name), unix.W_OK|unix.X_OK
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s: is a directory", name)
	}
	if err := unix.Access(what, mode); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func header(s *mihf.Snapshot) recording.Header {
	h := recording.Header{Node: s.Node, Started: time.Now().UTC()}
	for _, x := range s.Sensors {
		h.Sensors = append(h.Sensors, x.Sensor)
	}
	return h
}

// initial is the state as observations: what the sensors said before we listened. The
// attachment goes before the facts, so that a link comes up where it is attached.
func initial(s *mihf.Snapshot) []mihf.Observation {
	var all []mihf.Observation
	for i := range s.Links {
		l := &s.Links[i]
		base := mihf.Observation{At: s.At, Link: l.Link, Sensor: "snapshot"}
		if l.Association != mihf.AssociationNone {
			o := base
			o.Kind, o.Association = mihf.ObsAssociation, &mihf.Association{State: l.Association, PoA: l.PoA, SSID: l.SSID, Technology: l.Technology}
			all = append(all, o)
		}
		if l.Facts != nil {
			o := base
			o.Kind, o.Facts = mihf.ObsLink, l.Facts
			all = append(all, o)
		}
		if l.Values.Len() > 0 {
			o := base
			o.Kind, o.Values, o.PoA, o.Age = mihf.ObsRadio, l.Values, l.PoA, s.At.Sub(l.ValuesAt)
			all = append(all, o)
		}
	}
	for i := range s.Egress {
		all = append(all, mihf.Observation{At: s.At, Sensor: "snapshot", Kind: mihf.ObsEgress, Egress: &s.Egress[i]})
	}
	return all
}

// create opens the file to write, compressed by its name.
func (a *app) create(name string) (io.WriteCloser, error) {
	if name == "-" {
		return keepOpen{a.out}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if !strings.HasSuffix(name, ".gz") {
		return f, nil
	}
	return gzipFile{gzip.NewWriter(f), f}, nil
}

// keepOpen is a file that somebody else closes.
type keepOpen struct{ io.Writer }

// Close does nothing.
func (keepOpen) Close() error { return nil }

// gzipFile closes the compressor before the file.
type gzipFile struct {
	*gzip.Writer
	f *os.File
}

// Close finishes the file.
func (g gzipFile) Close() error { return errors.Join(g.Writer.Close(), g.f.Close()) }
