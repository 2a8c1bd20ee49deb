package modem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/mihf/busconn"
	"mihf.dev/sensors"
)

const (
	callTimeout = 2 * time.Second
	resumeGap   = time.Second // how long a suspend must be to look at all again
)

// What the bus is asked to send us.
const (
	ownerRule = "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',interface='org.freedesktop.DBus'," +
		"member='NameOwnerChanged',arg0='" + service + "'"
	signalRule = "type='signal',sender='" + service + "',path_namespace='/org/freedesktop/ModemManager1'"
)

// session is one connection to the bus. Signals come from a goroutine of the connection, each
// call has one of its own; all else belongs to the goroutine in run.
type session struct {
	sensor *Sensor
	state  *state
	emit   sensors.Emit
	report sensors.Report
	lost   bool // signals were lost before this session

	started   bool // it was connected
	bus       bus
	box       *inbox
	resync    resync
	suspended time.Duration
	calls     sync.WaitGroup
	pending   map[dbus.ObjectPath]map[callKind]context.CancelFunc
}

// resync is a complete reading that is to be told.
type resync struct {
	due, lost bool
	after     uint64 // readings of the list
}

// run connects, reads everything, and follows the changes until ctx ends or the bus is lost.
func (s *session) run(ctx context.Context) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	s.started = true
	s.pending = make(map[dbus.ObjectPath]map[callKind]context.CancelFunc)
	s.suspended = s.sensor.opt.Suspended()
	calling, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		s.calls.Wait()
		if ctx.Err() != nil {
			s.restore(context.WithoutCancel(ctx))
		}
		s.bus.Close()
	}()
	s.state.begin(s.now(), s.box.take().owner)
	if s.lost {
		s.resynced(true)
	}
	return s.follow(calling)
}

func (s *session) now() mihf.Time { return s.sensor.opt.Clock.Now() }

// open connects, listens, and finds who owns ModemManager's name.
func (s *session) open(ctx context.Context) (err error) {
	s.box = newInbox(&s.sensor.count, s.sensor.malformed)
	within, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	o := busconn.Options{Signal: s.box.signal, Heed: s.box.heed, Unread: s.sensor.malformed.Note}
	if s.bus, err = s.sensor.dial(within, o); err != nil {
		return s.unconnected(err)
	}
	defer func() {
		if err != nil {
			s.bus.Close()
		}
	}()
	for _, rule := range []string{ownerRule, signalRule} {
		if _, err := s.ofBus(ctx, "AddMatch", rule); err != nil {
			return fmt.Errorf("listen on the message bus: %w", err)
		}
	}
	got, err := s.ofBus(ctx, "GetNameOwner", service)
	if remote, ok := errors.AsType[dbus.Error](err); ok && remote.Name == busName+".Error.NameHasNoOwner" {
		s.box.found("")
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for ModemManager on the message bus: %w", err)
	}
	var owner string
	if err := dbus.Store(got, &owner); err != nil {
		return fmt.Errorf("look for ModemManager on the message bus: %w", err)
	}
	s.box.found(owner)
	return nil
}

// ofBus asks the bus itself.
func (s *session) ofBus(ctx context.Context, method, arg string) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.bus.Bus(ctx, method, arg)
}

// unconnected says what it means that there is no connection: a bus that was there before
// will be back soon.
func (s *session) unconnected(err error) error {
	switch {
	case s.lost:
		return fmt.Errorf("the message bus was lost: %s", err) //nolint:errorlint // another class of error on purpose
	case errors.Is(err, busconn.ErrNoBus):
		return fmt.Errorf("no message bus, so no ModemManager: %w: %w", sensors.ErrUnavailable, err)
	}
	return err
}

// errLost says that the bus is gone.
var errLost = errors.New("the message bus was lost, so what is known of modems is what was said last")

// follow does what is due and waits for the next reason.
func (s *session) follow(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := s.now()
		if s.resumed() {
			s.state.lost(now)
			s.resynced(false)
		}
		s.state.advance(now)
		s.turn(ctx, now)
		if over(ctx) {
			return nil
		}
		s.tell(ctx)
		next := s.state.next()
		wait := reconcile
		if !next.IsZero() {
			wait = min(wait, max(next.Sub(s.now()), 0))
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return nil
		case <-s.bus.Done():
			return errLost
		case <-s.box.wake:
			s.hear(ctx)
		case <-timer.C:
		}
	}
}

// hear takes what the inbox has. What a signal leads to does not wait for the next.
func (s *session) hear(ctx context.Context) {
	m := s.box.take()
	now := s.now()
	s.state.owns(now, m.owner)
	for i := range m.events {
		s.state.heard(now, &m.events[i])
		s.publish(ctx)
	}
	for i := range m.answers {
		s.done(&m.answers[i])
		err := sensors.Guard(func() error {
			s.state.answered(now, &m.answers[i])
			return nil
		})
		if err != nil { // the next look at the modems reads it again
			s.sensor.malformed.Note(err)
		}
		if err := s.state.wrong; err != nil {
			s.sensor.malformed.Note(err)
			s.state.wrong = nil
		}
	}
	if m.lost {
		s.sensor.count.overflows.Add(1)
		s.state.lost(now)
		s.resynced(true)
	}
}

// turn finds links, publishes, and asks.
func (s *session) turn(ctx context.Context, now mihf.Time) {
	for _, m := range s.state.unidentified(now) {
		there, id := s.find(m.interfaceName())
		m.identified(now, there, id)
	}
	s.publish(ctx)
	for _, c := range s.state.calls(now) {
		s.ask(ctx, c)
	}
	s.forget()
}

// find returns what is known of a network interface.
func (s *session) find(name string) (there bool, id mihf.LinkID) {
	opt := &s.sensor.opt
	if name == "" || opt.Link == nil {
		return false, ""
	}
	index, ok := opt.Interface(name)
	if !ok {
		return false, ""
	}
	if id, ok = opt.Link(index); !ok {
		return true, ""
	}
	return true, id
}

func (s *session) publish(ctx context.Context) {
	list := s.state.flush()
	for i := range list {
		if over(ctx) {
			return
		}
		s.emit(&list[i])
	}
}

// tell reports the sensor's condition, once it is known, and that all was read again.
func (s *session) tell(ctx context.Context) {
	st := s.state
	if st.owner != "" && !st.known && st.failure == "" {
		return
	}
	if r := &s.resync; r.due && (st.listed > r.after || st.owner == "") {
		s.sensor.count.resyncs.Add(1)
		lost := r.lost
		*r = resync{}
		if !over(ctx) {
			s.emit(&mihf.Observation{At: s.now(), Sensor: Name, Kind: mihf.ObsResync, Lost: lost})
		}
	}
	s.report(st.condition())
}

// resynced says that all is being read again.
func (s *session) resynced(lost bool) {
	s.resync = resync{due: true, lost: lost || s.resync.lost, after: s.state.listed}
}

// resumed reports whether the machine was suspended since the last call.
func (s *session) resumed() bool {
	total := s.sensor.opt.Suspended()
	if total-s.suspended > resumeGap {
		total = min(total, s.sensor.opt.Suspended()) // not because this process was held up in between
	}
	gap := total - s.suspended
	s.suspended = total
	return gap > resumeGap
}

func over(ctx context.Context) bool { return ctx.Err() != nil }
