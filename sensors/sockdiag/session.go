package sockdiag

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
)

// kernelConn is a netlink socket: a *netlink.Conn, or what takes its place in a test.
type kernelConn interface {
	SetReadDeadline(t time.Time) error
	Send(m netlink.Message) (netlink.Message, error)
	ReceiveIter() iter.Seq2[netlink.Message, error]
}

// session is one life of the socket. All of it belongs to the goroutine in run.
type session struct {
	sensor  *Sensor
	conn    kernelConn
	state   *state
	watched *watchSet // at the last reading
}

// run reads again and again until ctx ends or the kernel refuses.
func (s *session) run(ctx context.Context, emit sensors.Emit, report sensors.Report) error {
	opt := &s.sensor.opt
	for {
		begun := opt.Clock.Now()
		list, err := s.read(begun)
		if err != nil {
			return err
		}
		report(mihf.ConditionOK, "")
		for i := range list {
			if over(ctx) {
				return nil
			}
			emit(&list[i])
		}
		if !s.rest(ctx, opt.Clock.Now().Sub(begun)) {
			return nil
		}
	}
}

func over(ctx context.Context) bool { return ctx.Err() != nil }

// busyBytes is what must have moved since the last reading for the next to come sooner.
const busyBytes = 32 << 10

// rest waits for the next reading; false: ctx has ended.
func (s *session) rest(ctx context.Context, took time.Duration) bool {
	opt := &s.sensor.opt
	least := min(max(soonest, rests*took), longestRest)
	if !pause(ctx, opt.Clock.Real(least), nil) {
		return false
	}
	poll := opt.Poll
	if s.state.moved >= busyBytes {
		poll = poll * 2 / 5
	}
	return pause(ctx, opt.Clock.Real(max(0, poll-least)), s.sensor.poke)
}

// pause waits for d, or for a word on early; false: ctx has ended.
func pause(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	case <-early:
	}
	return true
}

// read reads the sockets once and returns what is to be published.
func (s *session) read(now mihf.Time) ([]mihf.Observation, error) {
	sensor := s.sensor
	w := sensor.watch.Load()
	if w != s.watched {
		s.state.show(w.without(s.watched))
		s.watched = w
	}
	l := &links{addresses: sensor.opt.Addresses(), byIndex: sensor.opt.Link}
	chosen := l.addresses
	if sensor.opt.RegisteredOnly {
		chosen = nil
	}
	filter := w.alternatives(chosen)
	s.state.begin()
	if len(filter) > 0 {
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			err := s.dump(family, filter, func(sock *socket) { s.state.take(now, sock, w, l) })
			if err != nil && (family == unix.AF_INET || !errors.Is(err, unix.ENOENT)) { // a kernel may have no IPv6
				return nil, err
			}
		}
	}
	sensor.count.readings.Add(1)
	out := s.state.end(now, l)
	sensor.count.heldBack.Add(s.state.heldBack)
	sensor.count.forgotten.Add(s.state.forgotten)
	return out, nil
}

// dump asks for the sockets of a family.
func (s *session) dump(family uint8, filter []alternative, each func(*socket)) error {
	if err := s.conn.SetReadDeadline(time.Now().Add(requestTimeout)); err != nil {
		return fmt.Errorf("read TCP sockets: %w", err)
	}
	_, err := s.conn.Send(netlink.Message{
		Header: netlink.Header{Type: msgByFamily, Flags: netlink.Request | netlink.Dump}, Data: request(family, filter),
	})
	if err != nil {
		return fmt.Errorf("ask for TCP sockets: %w", err)
	}
	for m, err := range s.conn.ReceiveIter() {
		if err != nil {
			return fmt.Errorf("read TCP sockets: %w", err)
		}
		if m.Header.Type != msgByFamily {
			continue
		}
		if err := sensors.Guard(func() error { return s.decode(m.Data, each) }); err != nil {
			s.sensor.malformed.Note(err)
		}
	}
	return nil
}

func (s *session) decode(data []byte, each func(*socket)) error {
	sock, rejected, err := decode(data)
	s.sensor.count.rejected.Add(uint64(rejected)) //nolint:gosec // a count
	if err != nil {
		return err
	}
	s.sensor.count.sockets.Add(1)
	each(&sock)
	return nil
}
