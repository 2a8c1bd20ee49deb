package rtnl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
)

const (
	// linkGap is between two readings of links, and grows up to linkGapMax as long as they
	// find nothing new: then someone makes noise.
	linkGap    = 10 * time.Millisecond
	linkGapMax = 25 * time.Millisecond
	// linkRest is the longest that links are not looked at, also where a reading took long
	// because the machine was busy: a loss that is over by then is never seen.
	linkRest = 100 * time.Millisecond
	routeLag = 10 * time.Millisecond // from a change to the reading of routes, so that one follows many
	// resumeGap is how long a suspend must be to read all again.
	resumeGap = time.Second
	// dumpTries is how often an interrupted dump is tried.
	dumpTries = 5
)

// groups are what the watch socket hears. All of them may be heard without rights.
var groups = []uint{
	unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE,
	unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE, unix.RTNLGRP_NEXTHOP,
}

// session is one life of the two sockets: the watch socket, read by a goroutine of its
// own, and the request socket. All else belongs to the goroutine in run.
type session struct {
	sensor *Sensor
	state  *state
	emit   sensors.Emit
	report sensors.Report
	lost   bool // messages were lost before this session
	buffer int

	watch   *conn
	kernel  *kernel
	box     *inbox
	rng     *rand.Rand
	pending hints

	links, defaults, resolve, full pacer
	reconcileAt                    mihf.Time
	planned                        mihf.Time // up to when what was due is planned
	suspended                      time.Duration
}

// run opens the sockets, reads everything, and follows the changes until ctx ends or a
// socket fails.
func (s *session) run(ctx context.Context) error {
	if err := s.open(); err != nil {
		return err
	}
	defer func() { _ = s.kernel.conn.close() }()
	var wg sync.WaitGroup
	wg.Go(func() { s.sensor.read(s.watch, s.box) })
	defer wg.Wait()
	defer func() { _ = s.watch.close() }()

	s.suspended = s.sensor.opt.Suspended()
	if err := s.readAll(ctx); err != nil {
		return err
	}
	s.state.started = true
	s.publish(ctx)
	if s.lost {
		s.resynced(ctx, true)
	}
	s.report(mihf.ConditionOK, "")
	s.tell()
	return s.follow(ctx)
}

// tell reports whether all links are shown.
func (s *session) tell() {
	if s.state.waiting > 0 {
		s.report(mihf.ConditionDegraded, fmt.Sprintf("more than %d links: virtual ones without traffic are shown when others are gone", maxLinks))
		return
	}
	s.report(mihf.ConditionOK, "")
}

func (s *session) open() error {
	opt := &s.sensor.opt
	s.rng = rand.New(rand.NewPCG(opt.Seed, 0x72746e6c))
	s.box = newInbox()
	s.links.gap, s.resolve.gap, s.defaults.gap, s.full.gap = linkGap, linkGap, linkGap, 100*time.Millisecond
	s.links.most = linkRest
	var err error
	if s.watch, err = dial(opt.Netns, groups...); err != nil {
		return err
	}
	if err := s.watch.setBuffer(s.buffer); err != nil {
		opt.Log.Info("the watch socket keeps the system's buffer", "error", err.Error())
	}
	if s.kernel, err = openKernel(opt.Netns); err != nil {
		return errors.Join(err, s.watch.close())
	}
	s.kernel.mark, s.kernel.uid, s.kernel.malformed = opt.Mark, opt.UID, s.sensor.malformed.Note
	s.filter()
	return nil
}

// filter lets the kernel drop what is of no interest, for the set that is watched now.
func (s *session) filter() {
	w := s.sensor.watch.Load()
	s.state.setPeers(w.peers)
	if err := s.watch.setFilter(routeFilter(w)); err != nil {
		s.sensor.opt.Log.Info("foreign routes are sorted out by the sensor", "error", err.Error())
	}
}

func (s *session) now() mihf.Time { return s.sensor.opt.Clock.Now() }

// follow waits for the next reason to look, and looks.
func (s *session) follow(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := s.now()
		timer.Reset(max(s.next().Sub(now), 0))
		wake := s.box.wake
		if due := s.links.due; !due.IsZero() && due.Sub(now) <= linkGapMax {
			wake = nil // what comes in until then is gathered: a flood does not wake this loop
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.sensor.poke:
			s.filter()
			s.resolve.want(s.now(), 0)
		case <-wake:
		case <-timer.C:
		}
		h, err := s.box.take()
		s.pending.merge(h)
		if err != nil {
			return err
		}
		if err := s.work(ctx); err != nil {
			return err
		}
	}
}

// next returns when there is something to do, at the latest the next reconciliation.
func (s *session) next() mihf.Time {
	now := s.now()
	next := s.reconcileAt
	for _, t := range []mihf.Time{s.links.due, s.defaults.due, s.resolve.due, s.full.due} {
		next = mihf.Sooner(next, t)
	}
	if t := s.state.next(now); !t.Due(s.planned) {
		next = mihf.Sooner(next, t)
	}
	return next
}

// work turns what was heard into readings, and does those that are due.
func (s *session) work(ctx context.Context) error {
	s.plan()
	resync, reconcile := s.resumed(), s.reconcileAt.Due(s.now())
	switch {
	case resync, reconcile, s.full.due.Due(s.now()):
		start := s.now()
		s.full.begin()
		idle := len(s.pending.links) == 0 && s.defaults.due.IsZero() && s.resolve.due.IsZero()
		if err := s.readAll(ctx); err != nil {
			return err
		}
		s.full.done(start, s.now())
		n := s.publish(ctx)
		s.tell()
		if reconcile && idle {
			s.sensor.count.drift.Add(uint64(n))
		}
		if resync {
			s.resynced(ctx, false)
		}
		return nil
	}
	if s.links.due.Due(s.now()) {
		if err := s.followLinks(ctx); err != nil {
			return err
		}
	}
	if s.defaults.due.Due(s.now()) {
		if err := s.readDefaults(); err != nil {
			return err
		}
	}
	if s.resolve.due.Due(s.now()) {
		if err := s.askRoutes(ctx); err != nil {
			return err
		}
	}
	s.publish(ctx)
	s.tell()
	return nil
}

// plan says when the readings that were asked for are due.
func (s *session) plan() {
	now := s.now()
	s.planned = now
	if s.pending.all {
		s.full.want(now, 0)
	}
	for index, h := range s.pending.links {
		if !s.state.toRead(now, index, h) {
			delete(s.pending.links, index)
		}
	}
	for index, due := range s.state.young {
		if due.Due(now) {
			s.pending.link(index, linkHint{link: true, alive: true})
		}
	}
	if len(s.pending.links) > 0 {
		s.links.want(now, 0)
	}
	if s.pending.defaults || s.state.expiry.Due(now) {
		s.defaults.want(now, routeLag)
	}
	if s.pending.resolve {
		s.resolve.want(now, routeLag)
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

// publish emits the difference and returns how many observations it was.
func (s *session) publish(ctx context.Context) int {
	list := s.state.flush(s.now())
	for i := range list {
		if ctx.Err() != nil {
			return i
		}
		list[i].Sensor = Name
		s.emit(&list[i])
	}
	return len(list)
}

func (s *session) resynced(ctx context.Context, lost bool) {
	s.sensor.count.resyncs.Add(1)
	if ctx.Err() == nil {
		s.emit(&mihf.Observation{At: s.now(), Sensor: Name, Kind: mihf.ObsResync, Lost: lost})
	}
}

// dump calls f again while its dump is interrupted, up to dumpTries times. It reports
// whether the last one still was: then something may be missing in it.
func (s *session) dump(f func() error) (partial bool, err error) {
	for try := 1; ; try++ {
		err = f()
		if !errors.Is(err, errInterrupted) {
			return false, err
		}
		s.sensor.count.interrupted.Add(1)
		if try == dumpTries {
			return true, nil
		}
		time.Sleep(time.Duration(s.rng.Int64N(int64(try) * int64(time.Millisecond))))
	}
}

func gone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || isErrno(err, unix.ENODEV, unix.ENXIO)
}
