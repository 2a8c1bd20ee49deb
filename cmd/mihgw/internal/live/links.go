package live

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"

	"mihf.dev/clients/attach"
	"mihf.dev/mihf"
	"mihf.dev/transports/tcpadjust"
	"mihf.dev/transports/tcpadjust/kernel"
)

// attached is a link whose connections the agent looks after.
type attached struct {
	id        mihf.LinkID
	name      string
	index     int
	addresses []netip.Addr // that are usable

	// Of a link whose downloads are frozen:
	freezer *kernel.Freezer
	rtt     atomic.Int64 // ns, the longest of its downloads, with queue
	frozen  []kernel.Socket
	stop    context.CancelFunc
	done    chan struct{}
}

func (l *attached) has(a netip.Addr) bool { return slices.Contains(l.addresses, a) }

// follow takes the links as they are.
func (a *Agent) follow(ctx context.Context, s *mihf.Snapshot) {
	there := map[mihf.LinkID]bool{}
	for i := range s.Links {
		f := s.Links[i].Facts
		if f == nil || f.Namespace != "" || len(a.cfg.Links) > 0 && !slices.Contains(a.cfg.Links, f.Name) {
			continue
		}
		id := s.Links[i].Link
		there[id] = true
		l := a.links[id]
		if l == nil || l.index != f.Index {
			a.drop(l)
			l = &attached{id: id, name: f.Name, index: f.Index}
			a.links[id] = l
			if a.cfg.Freeze && !a.cfg.DryRun {
				a.guard(ctx, l)
			}
		}
		l.name = f.Name
		l.addresses = l.addresses[:0]
		for _, addr := range f.Addresses {
			if addr.Usable() {
				l.addresses = append(l.addresses, addr.Prefix.Addr())
			}
		}
	}
	for id, l := range a.links {
		if !there[id] {
			a.drop(l)
			delete(a.links, id)
		}
	}
}

func (a *Agent) drop(l *attached) {
	if l == nil || l.freezer == nil {
		return
	}
	l.stop()
	<-l.done
	a.thaw(l)
	if err := l.freezer.Close(); err != nil {
		a.cfg.Logger.Warn("a freezer stays", "link", l.name, "error", err)
	}
	l.freezer = nil
}

// leave lets all links go.
func (a *Agent) leave() error {
	var errs []error
	for id, l := range a.links {
		a.drop(l)
		delete(a.links, id)
	}
	return errors.Join(errs...)
}

// guard joins the link's downloads to the broker as one flow, with the longest of their
// round-trip times: so the freeze comes in time for each.
func (a *Agent) guard(ctx context.Context, l *attached) {
	device, err := netlink.LinkByIndex(l.index)
	if err == nil {
		l.freezer, err = kernel.OpenFreezer(device)
	}
	if err != nil {
		a.cfg.Logger.Warn("downloads will not be frozen", "link", l.name, "error", err)
		return
	}
	f := attach.New(&downloads{a, l, l.name}, a.broker, attach.Options{
		Spec: mihf.FlowSpec{
			Group: "kernel-tcp/" + l.name, Link: l.id, Continuity: mihf.ContinuitySameAddress, Direction: mihf.DirectionReceive,
			MaxFreeze: kernel.MaxFreeze,
		},
		Clock: a.cfg.Clock, Logger: a.cfg.Logger,
	})
	ctx, l.stop = context.WithCancel(ctx)
	l.done = make(chan struct{})
	go func() {
		defer close(l.done)
		if err := f.Run(ctx); err != nil && ctx.Err() == nil {
			a.cfg.Logger.Warn("downloads will not be frozen", "link", l.name, "error", err)
		}
	}()
}

// downloads is what the connections of a link that receive are to the broker.
type downloads struct {
	agent *Agent
	link  *attached
	name  string // of the link, when it was joined
}

// RTT returns the longest of the round-trip times; 0: there is none.
func (d *downloads) RTT() time.Duration { return time.Duration(d.link.rtt.Load()) }

// Freeze closes the windows of those for which it is early enough.
func (d *downloads) Freeze(f mihf.Freeze) {
	d.ask(func(context.Context) { d.agent.freeze(d.link, f) })
}

// Unfreeze opens them again.
func (d *downloads) Unfreeze(mihf.Unfreeze) { d.ask(func(context.Context) { d.agent.thaw(d.link) }) }

// Characteristics is not for a group of connections: PathUsable brings them.
func (d *downloads) Characteristics(mihf.LCI) {}

// ask has the agent's goroutine do something. Where it is so far behind that it can't be
// asked, a freeze that is left out does no harm, and one in force ends by its deadline.
func (d *downloads) ask(f func(context.Context)) {
	select {
	case d.agent.requests <- f:
	default:
		d.agent.cfg.Logger.Warn("a hint was left out: the kernel is slow", "link", d.name)
	}
}

// tell notes the longest round-trip time of each link's downloads.
func (a *Agent) tell(all []kernel.Socket) {
	for _, l := range a.links {
		longest := time.Duration(0)
		for i := range all {
			if s := &all[i]; l.has(s.Local.Addr()) && receives(s) {
				longest = max(longest, roundTrip(s))
			}
		}
		l.rtt.Store(int64(longest))
	}
}

func receives(s *kernel.Socket) bool { return s.PacketsOut == 0 && s.BytesReceived > s.BytesAcked }

func roundTrip(s *kernel.Socket) time.Duration { return max(s.SRTT, s.RcvRTT) }

// freeze closes windows, before the loss.
func (a *Agent) freeze(l *attached, f mihf.Freeze) {
	if l.freezer == nil {
		return
	}
	all, err := a.sockets(l.has)
	if err != nil {
		a.cfg.Logger.Warn("connections are not known", "error", err)
		return
	}
	hold := min(f.Lease+f.P90+f.ExpectedOutage, kernel.MaxFreeze)
	var orders []kernel.Order
	for i := range all {
		s := &all[i]
		act := Action{Link: l.name, What: "freeze", Local: s.Local, Remote: s.Remote}
		switch {
		case !receives(s):
			continue
		case !tcpadjust.FreezeInTime(f.P50, roundTrip(s), s.MinRTT/2):
			act.Why = fmt.Sprintf("too late: %v to the loss, a round trip takes %v", f.P50, roundTrip(s))
		default:
			if err := l.freezer.Freeze(s.Local, s.Remote, hold); err != nil {
				act.Why = err.Error()
				break
			}
			if !slices.ContainsFunc(l.frozen, func(o kernel.Socket) bool { return o.Cookie == s.Cookie }) { // else it is renewed
				l.frozen = append(l.frozen, *s)
			}
			orders = append(orders, kernel.Order{Cookie: s.Cookie, Acks: 1})
		}
		a.report(act)
	}
	a.apply("close the window", l.name, all, orders)
}

// thaw opens the windows that are closed.
func (a *Agent) thaw(l *attached) {
	var orders []kernel.Order
	for i := range l.frozen {
		s := &l.frozen[i]
		if _, err := l.freezer.Thaw(s.Local, s.Remote); err != nil {
			a.cfg.Logger.Warn("a connection is frozen until its deadline", "error", err)
		}
		orders = append(orders, kernel.Order{Cookie: s.Cookie, Acks: 1})
	}
	a.apply("thaw", l.name, l.frozen, orders)
	l.frozen = nil
}
