package live

import (
	"mihf.dev/mihf"
	"mihf.dev/transports/tcpadjust"
	"mihf.dev/transports/tcpadjust/kernel"
)

// raise is a connection whose window was raised, until it is clear that it was right.
type raise struct {
	conn   tcpadjust.Conn
	link   string
	unpace mihf.Time // when its pacing is over
}

// adjust sets the windows of connections that send, by the characteristics of their path.
func (a *Agent) adjust(l *attached, all []kernel.Socket, lci *mihf.LCI) {
	var senders []kernel.Socket
	for _, s := range all {
		if !receives(&s) {
			senders = append(senders, s)
		}
	}
	now := a.cfg.Clock.Now()
	var orders []kernel.Order
	for i := range senders {
		s := &senders[i]
		r := &raise{link: l.name}
		p := r.conn.Adjust(now, state(s), tcpadjust.Path{LCI: *lci, Sharers: len(senders)}, progress(s))
		if p.Direction == tcpadjust.Nothing {
			a.report(Action{Link: l.name, What: "adjust", Local: s.Local, Remote: s.Remote, Why: p.Why})
			continue
		}
		orders = append(orders, order(s.Cookie, p))
		if p.Direction == tcpadjust.Raise && !a.cfg.DryRun {
			r.unpace = now.Add(p.PacedFor)
			a.raised[s.Cookie] = r
		}
	}
	a.change("adjust", l.name, senders, orders)
}

// change applies orders whose effect stays, and notes before what is there.
func (a *Agent) change(what, link string, all []kernel.Socket, orders []kernel.Order) {
	if len(orders) == 0 {
		return
	}
	if !a.cfg.DryRun {
		if err := a.journal.Changing(all); err != nil {
			a.cfg.Logger.Warn("a crash would leave connections as they are", "error", err)
		}
	}
	a.apply(what, link, all, orders)
}

func order(cookie uint64, p tcpadjust.Plan) kernel.Order {
	u := func(n int) uint32 { return uint32(max(0, n)) } //nolint:gosec // segments
	return kernel.Order{
		Cookie: cookie, Cwnd: u(p.CwndSegments), Ssthresh: u(p.Ssthresh), Clamp: u(p.ClampSegment), PacingBPS: uint64(p.PacingBPS), Push: true,
	}
}

func state(s *kernel.Socket) tcpadjust.State {
	header := 0
	if s.Local.Addr().Is6() {
		header = 60
	}
	return tcpadjust.State{
		Role: tcpadjust.Sender, SegmentBytes: int(s.MSS), HeaderBytes: header,
		CwndSegments: int(s.Cwnd), Ssthresh: int(s.Ssthresh),
	}
}

func progress(s *kernel.Socket) tcpadjust.Progress {
	return tcpadjust.Progress{DeliveredBytes: s.BytesAcked, LostSegments: uint64(s.Retransmitted)}
}

// lookAfter takes pacing off whose time is over, and raises back that were wrong.
func (a *Agent) lookAfter() {
	now := a.cfg.Clock.Now()
	all, err := a.kernel.Sockets(func(s *kernel.Socket) bool { return a.raised[s.Cookie] != nil })
	if err != nil {
		a.cfg.Logger.Warn("connections are not known", "error", err)
		return
	}
	there := map[uint64]bool{}
	for i := range all {
		s := &all[i]
		r := a.raised[s.Cookie]
		there[s.Cookie] = true
		if p, ok := r.conn.Observe(now, progress(s)); ok {
			o := order(s.Cookie, p)
			o.PacingBPS = kernel.Unpaced
			a.apply("take back", r.link, all[i:i+1], []kernel.Order{o})
			delete(a.raised, s.Cookie)
			continue
		}
		if r.unpace.Due(now) {
			a.unpace(r, all[i:i+1])
		}
		if r.conn.Next().IsZero() {
			delete(a.raised, s.Cookie)
		}
	}
	for cookie := range a.raised {
		if !there[cookie] {
			delete(a.raised, cookie)
		}
	}
}

// unpace gives a connection the pacing that it had.
func (a *Agent) unpace(r *raise, one []kernel.Socket) {
	r.unpace = 0
	rate := kernel.Unpaced
	if had, ok := a.journal.Had(one[0].Cookie); ok && had.PacingBPS > 0 {
		rate = had.PacingBPS
	}
	a.apply("unpace", r.link, one, []kernel.Order{{Cookie: one[0].Cookie, PacingBPS: rate}})
}
