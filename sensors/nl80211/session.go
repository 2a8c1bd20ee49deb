package nl80211

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
)

const (
	familyName = "nl80211"
	// deafEvery is between two complete looks where the kernel's messages may not be heard.
	deafEvery = time.Second
	resumeGap = time.Second // how long a suspend must be to look at all again
)

// groups are what the watch socket hears.
var groups = []string{
	unix.NL80211_MULTICAST_GROUP_MLME, unix.NL80211_MULTICAST_GROUP_SCAN, unix.NL80211_MULTICAST_GROUP_CONFIG,
}

// session is one life of the two sockets: the watch socket, read by a goroutine of its
// own, and the request socket. All else belongs to the goroutine in run.
type session struct {
	sensor *Sensor
	cfg    config
	state  *state
	emit   sensors.Emit
	report sensors.Report
	lost   bool // messages were lost before this session

	started   bool // the first reading is complete
	watch     conn
	kernel    *kernel
	box       *inbox
	deaf      string // why not all messages are heard; "": they are
	suspended time.Duration
}

// run opens the sockets, reads everything, and follows the changes until ctx ends or a
// socket fails.
func (s *session) run(ctx context.Context) error {
	defer s.close()
	if err := s.open(); err != nil {
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.sensor.read(s.watch, s.box) })
	defer wg.Wait()
	defer func() { _ = s.watch.Close() }()

	s.suspended = s.sensor.opt.Suspended()
	s.state.cfg = &s.cfg
	for _, r := range s.state.radios {
		r.configure(&s.cfg)
	}
	s.state.lost(s.now())
	if err := s.work(ctx); err != nil {
		return err
	}
	s.started = true
	if s.lost {
		s.resynced(ctx, true)
	}
	s.tell()
	return s.follow(ctx)
}

func (s *session) now() mihf.Time { return s.sensor.opt.Clock.Now() }

// close closes what open opened; a socket may be closed twice.
func (s *session) close() {
	for _, c := range []conn{s.watch, s.ask()} {
		if c != nil {
			_ = c.Close()
		}
	}
}

func (s *session) ask() conn {
	if s.kernel == nil {
		return nil
	}
	return s.kernel.conn
}

func (s *session) open() error {
	s.box = newInbox()
	c, err := s.sensor.dial()
	if err != nil {
		return wrap("open generic netlink socket", err)
	}
	s.kernel = &kernel{conn: c, count: &s.sensor.count, broken: s.sensor.malformed.Note}
	if s.kernel.family, err = c.GetFamily(familyName); err != nil {
		if isErrno(err, unix.ENOENT) {
			return fmt.Errorf("the kernel has no nl80211 (module cfg80211), so no Wi-Fi: %w", sensors.ErrUnavailable)
		}
		return wrap("find nl80211", err)
	}
	if s.watch, err = s.sensor.dial(); err != nil {
		return wrap("open generic netlink socket", err)
	}
	if err := s.watch.SetReadBuffer(s.sensor.buffer); err != nil {
		s.sensor.opt.Log.Info("the watch socket keeps the system's buffer", "error", err.Error())
	}
	s.cfg = s.sensor.config()
	for _, name := range groups {
		if err := s.join(name); err != nil {
			s.deaf = fmt.Sprintf("messages of group %s are not heard, so all is looked at every second: %v", name, err)
			s.cfg.reconcile = min(s.cfg.reconcile, deafEvery)
		}
	}
	return nil
}

func (s *session) join(name string) error {
	for _, g := range s.kernel.family.Groups {
		if g.Name == name {
			return s.watch.JoinGroup(g.ID)
		}
	}
	return errors.New("the kernel does not have it")
}

// follow waits for the next reason to look, and looks.
func (s *session) follow(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(max(s.state.next().Sub(s.now()), 0))
		select {
		case <-ctx.Done():
			return nil
		case <-s.box.wake:
		case <-timer.C:
		}
		resumed := s.resumed()
		if resumed {
			s.state.lost(s.now())
		}
		if err := s.hear(); err != nil {
			return err
		}
		if err := s.work(ctx); err != nil {
			return err
		}
		if resumed {
			s.resynced(ctx, false)
		}
		s.tell()
	}
}

// hear takes what the reader left.
func (s *session) hear() error {
	events, lost, err := s.box.take()
	if err != nil {
		return err
	}
	now := s.now()
	for i := range events {
		s.state.heard(now, &events[i])
	}
	if lost {
		s.sensor.count.unheard.Add(1)
		s.state.lost(now)
	}
	return nil
}

// work does what is due and publishes the difference.
func (s *session) work(ctx context.Context) error {
	if s.state.listAt.Due(s.now()) {
		if err := s.list(); err != nil {
			return err
		}
	}
	for _, r := range s.state.ordered() {
		if over(ctx) {
			return nil
		}
		if err := s.visit(r); err != nil {
			return err
		}
		s.publish(ctx) // what is urgent on one interface does not wait for the next
	}
	s.publish(ctx)
	return nil
}

// tell reports the sensor's condition.
func (s *session) tell() {
	var why []string
	if s.deaf != "" {
		why = append(why, s.deaf)
	}
	if s.state.left > 0 {
		why = append(why, fmt.Sprintf("more than %d interfaces: %d are not looked at", maxRadios, s.state.left))
	}
	for _, r := range s.state.ordered() {
		if c := r.complaint(); c != "" {
			why = append(why, c)
		}
	}
	switch {
	case len(why) > 0:
		s.report(mihf.ConditionDegraded, strings.Join(why, "; "))
	case len(s.state.radios) == 0:
		s.report(mihf.ConditionUnavailable, "no Wi-Fi interface")
	default:
		s.report(mihf.ConditionOK, "")
	}
}

func (s *session) publish(ctx context.Context) {
	list := s.state.flush(s.now())
	for i := range list {
		if over(ctx) {
			return
		}
		s.emit(&list[i])
	}
}

func (s *session) resynced(ctx context.Context, lost bool) {
	s.sensor.count.resyncs.Add(1)
	if !over(ctx) {
		s.emit(&mihf.Observation{At: s.now(), Sensor: Name, Kind: mihf.ObsResync, Lost: lost})
	}
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
