package dbusfront

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"sync"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/mihf/busconn"
	"mihf.dev/proto/dbusapi"
)

var errGone = fmt.Errorf("%w: the connection left the bus", mihf.ErrClosed)

// peer is another connection on the bus that called us.
type peer struct {
	b      *bus
	name   string          // unique
	ctx    context.Context // ends when it leaves
	cancel context.CancelCauseFunc

	// Guarded by the bus's lock.
	queue   []*busconn.Call
	waiting int // octets of the calls in queue
	working bool
	user    *holder
	uid     uint32 // of user, unless that is of strangers

	// The worker's: one goroutine at a time.
	who *mihf.Caller // nil: the bus was not asked yet

	mu       sync.Mutex // guards the following
	streams  map[uint64]*stream
	attached *attached
}

func newPeer(b *bus, name string) *peer {
	p := &peer{b: b, name: name, user: &b.strangers, streams: map[uint64]*stream{}}
	p.ctx, p.cancel = context.WithCancelCause(b.ctx)
	return p
}

// idle reports whether nothing would be lost with the peer. The bus's lock is held.
func (p *peer) idle() bool {
	if p.working {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.streams) == 0 && p.attached == nil
}

// work does the peer's calls, one after another, until none waits.
func (p *peer) work() {
	for {
		p.b.mu.Lock()
		if len(p.queue) == 0 {
			p.working = false
			p.b.mu.Unlock()
			return
		}
		call := p.queue[0]
		p.queue[0] = nil // what it held is not kept
		p.queue = p.queue[1:]
		p.charge(-1, -call.Size())
		p.b.mu.Unlock()
		if who, err := p.identify(); err == nil { // else the call is refused for that
			if why := p.claim(who); why != "" {
				p.b.s.counts.refused.Add(1)
				p.refuse(call, dbusapi.ErrorLimitsExceeded, why)
				continue
			}
		}
		p.do(call)
	}
}

// identify returns who the peer is, as the bus says.
func (p *peer) identify() (mihf.Caller, error) {
	if p.who != nil {
		return *p.who, nil
	}
	got, err := p.b.conn.Bus(p.ctx, "GetConnectionCredentials", p.name)
	if err != nil {
		return mihf.Caller{}, fmt.Errorf("%w: the bus does not say who the caller is: %w", mihf.ErrPermission, err)
	}
	credentials, _ := got[0].(map[string]dbus.Variant)
	who := mihf.Caller{Front: "dbus"}
	if uid, ok := credentials["UnixUserID"].Value().(uint32); ok {
		who.UID = mihf.Some(uid)
	}
	if pid, ok := credentials["ProcessID"].Value().(uint32); ok {
		who.PID = int(pid)
	}
	groups, _ := credentials["UnixGroupIDs"].Value().([]uint32)
	who.GID = primaryGroup(who.UID, groups)
	p.who = &who
	return who, nil
}

// primaryGroup returns the user's primary group if it is among the credentials' groups: the
// bus gives them all, and does not say which is which.
func primaryGroup(uid mihf.Opt[uint32], groups []uint32) mihf.Opt[uint32] {
	if len(groups) == 1 {
		return mihf.Some(groups[0])
	}
	id, known := uid.Get()
	if !known || len(groups) == 0 {
		return mihf.Opt[uint32]{}
	}
	u, err := user.LookupId(strconv.FormatUint(uint64(id), 10))
	if err != nil {
		return mihf.Opt[uint32]{}
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil || !slices.Contains(groups, uint32(gid)) {
		return mihf.Opt[uint32]{}
	}
	return mihf.Some(uint32(gid))
}

// reply answers a call. An answer that cannot be sent for what it holds becomes an error.
func (p *peer) reply(c *busconn.Call, args ...any) {
	var unsent error
	_ = p.b.post(p.ctx, c.Member, func() error { // an error: who asked has left, or the bus was lost
		err := p.b.conn.Reply(c, args...)
		if !errors.Is(err, busconn.ErrBusy) {
			unsent = err
		}
		return err
	})
	switch {
	case unsent == nil || p.ctx.Err() != nil:
	case errors.Is(unsent, busconn.ErrTooLarge):
		p.refuse(c, dbusapi.ErrorLimitsExceeded, "the answer is too large for a bus: use the gRPC front")
	default:
		p.refuse(c, dbusapi.ErrorFailed, "the answer could not be sent; see the daemon's log")
	}
}

func (p *peer) refuse(c *busconn.Call, name, text string) {
	_ = p.b.post(p.ctx, c.Member, func() error { return p.b.conn.Refuse(c, name, text) }) // as above
}

// lastWords waits until what the broker still says is delivered.
func (p *peer) lastWords(ctx context.Context) {
	p.mu.Lock()
	var ends []<-chan struct{}
	for _, s := range p.streams {
		ends = append(ends, s.ended)
	}
	if p.attached != nil {
		ends = append(ends, p.attached.ended)
	}
	p.mu.Unlock()
	for _, end := range ends {
		select {
		case <-end:
		case <-ctx.Done():
			return
		}
	}
}
