package grpcfront

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
)

// shares are what each caller has under way: calls, and replies that its connections have
// not taken yet.
type shares struct {
	maxCalls  int64
	maxUnread int64
	refused   atomic.Uint64

	mu     sync.Mutex // guards the following
	calls  access.Shares
	unread access.Shares // bytes
}

// unreadShares is how many users' shares of unread bytes there are together.
const unreadShares = 4

func (s *shares) set(o *Options) {
	s.maxCalls, s.maxUnread = int64(o.MaxCallsPerUser), int64(o.MaxUnreadBytesPerUser)
	s.calls = access.Shares{Each: 2 * s.maxCalls, Total: math.MaxInt64} // as many again are answered with a refusal
	s.unread = access.Shares{Each: s.maxUnread, Total: unreadShares * s.maxUnread}
}

// overShare marks the context of a call that is one too many.
type overShare struct{}

// begin counts a call until its context ends. It runs before anything of the call but its
// header is read, in the connection's reader, and must not fail: gRPC would leave the
// call's timer behind. A caller that has twice its share under way waits for no answers, and
// loses the connection.
func (s *shares) begin(ctx context.Context, _ *tap.Info) (context.Context, error) {
	info := infoOf(ctx)
	who := info.caller.Identity()
	s.mu.Lock()
	room := s.calls.Take(who, 1)
	over := s.calls.Held(who) > s.maxCalls
	s.mu.Unlock()
	if room != access.Enough {
		s.refused.Add(1)
		info.conn.drop()
		return ctx, nil
	}
	if over {
		ctx = context.WithValue(ctx, overShare{}, true)
	}
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls.Give(who, 1)
	})
	return ctx, nil
}

// check refuses what is beyond its caller's share.
func (s *shares) check(ctx context.Context) error {
	info := infoOf(ctx)
	err := info.refused
	if ctx.Value(overShare{}) != nil {
		err = fmt.Errorf("%w: %v has %d calls under way; see [grpc] max_calls_per_user", mihf.ErrLimit, info.caller.Identity(), s.maxCalls)
	}
	if err != nil {
		s.refused.Add(1)
	}
	return err
}

// reply is an encoded message that counts as unread by its caller until the connection has
// taken it, or is gone.
type reply struct {
	bytes *[]byte
	share *unread
}

// reply encodes a message. It fails with mihf.ErrLimit where the caller leaves too much
// unread.
func (s *shares) reply(ctx context.Context, m proto.Message) (*reply, error) {
	size := proto.Size(m)
	u := &unread{of: s, who: callerOf(ctx).Identity(), n: int64(size)}
	s.mu.Lock()
	room := s.unread.Take(u.who, u.n)
	s.mu.Unlock()
	switch room {
	case access.OwnFull:
		s.refused.Add(1)
		return nil, fmt.Errorf("%w: replies of more than %d bytes wait for %v to read them; see [grpc] max_unread_bytes_per_user", mihf.ErrLimit, s.maxUnread, u.who)
	case access.TotalFull:
		s.refused.Add(1)
		return nil, fmt.Errorf("%w: replies of more than %d bytes wait to be read; see [grpc] max_unread_bytes_per_user", mihf.ErrLimit, unreadShares*s.maxUnread)
	case access.Enough:
	}
	b, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 0, max(size, minReply)), m)
	if err != nil {
		u.Put(nil)
		return nil, fmt.Errorf("encoding %T: %w", m, err)
	}
	r := &reply{bytes: &b, share: u}
	// gRPC frees what it has written, but not all that waits in a connection that breaks.
	runtime.AddCleanup(r.bytes, func(u *unread) { u.Put(nil) }, u)
	return r, nil
}

// minReply is the room of a small reply: gRPC does not tell when it has written a smaller one.
const minReply = 1<<10 + 1

// buffers returns the reply for the connection, which frees it.
func (r *reply) buffers() mem.BufferSlice { return mem.BufferSlice{mem.NewBuffer(r.bytes, r.share)} }

// unread is one reply's part of its caller's share. As the pool that the reply's buffer goes
// back to, it learns when it was written.
type unread struct {
	of   *shares
	who  mihf.Identity
	n    int64
	once sync.Once
}

// Get is not used: nothing is taken from this pool.
func (u *unread) Get(length int) *[]byte { b := make([]byte, length); return &b }

// Put ends the reply.
func (u *unread) Put(*[]byte) {
	u.once.Do(func() {
		u.of.mu.Lock()
		defer u.of.mu.Unlock()
		u.of.unread.Give(u.who, u.n)
	})
}
