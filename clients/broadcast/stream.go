package broadcast

import (
	"fmt"
	"io"
	"slices"
	"sync"

	"mihf.dev/clients"
	"mihf.dev/mihf"
)

// ErrLost ends a stream that missed something.
var ErrLost = fmt.Errorf("%w: messages were lost on the way", mihf.ErrSlow)

// Live is a message as it was heard: an event or a hint.
type Live struct {
	mihf.Delivery
	Chain uint64 // sequence of the message before it on its link or of its flow
}

func (l *Live) boot() mihf.BootID {
	if l.Kind == mihf.DeliverHint {
		return l.Hint.Boot
	}
	return l.Event.Boot
}

// Options are what a stream is made of. The order matters: a client listens first, then
// catches up, then makes the stream.
type Options struct {
	Request mihf.SubscribeRequest
	// CaughtUp is what the subscription gave that was published already, up to Reached of
	// run Boot.
	CaughtUp []mihf.Delivery
	Boot     mihf.BootID
	Reached  uint64
	// Live are the messages heard since before the catch-up, in order. Who fills it must not
	// wait for the reader: it drops the message and closes Lost instead.
	Live <-chan Live
	// Lost is closed when a message was dropped or the connection ended; Why says which. It
	// is heeded before what waits in Live.
	Lost <-chan struct{}
	Why  func() error
	// Close ends the listening.
	Close func()
}

// Stream is a subscription. One goroutine reads it; Close may be called by any.
type Stream struct {
	o       Options
	pending []mihf.Delivery
	chain   chain
	last    uint64 // sequence of the newest delivery
	broken  bool   // a message was missed
	closed  chan struct{}
	close   func()
}

var _ clients.Stream = (*Stream)(nil)

// New returns a stream. It owns o.CaughtUp.
func New(o Options) *Stream {
	s := &Stream{o: o, pending: o.CaughtUp, chain: newChain(o.Boot, o.Reached), last: o.Request.After, closed: make(chan struct{})}
	s.close = sync.OnceFunc(func() {
		close(s.closed)
		if o.Close != nil {
			o.Close()
		}
	})
	s.o.CaughtUp = nil
	return s
}

// Next waits for deliveries. It ends with io.EOF where only what was present is wanted,
// with [ErrLost], with Options.Why, or with mihf.ErrClosed.
func (s *Stream) Next(buf []mihf.Delivery) (int, error) {
	if len(buf) == 0 {
		return 0, fmt.Errorf("%w: no room for a delivery", mihf.ErrInvalid)
	}
	if n := copy(buf, s.pending); n > 0 {
		s.pending = s.pending[n:]
		s.last = buf[n-1].Sequence()
		return n, nil
	}
	s.pending = nil
	if s.o.Request.Present {
		return 0, io.EOF
	}
	if s.broken {
		return 0, ErrLost
	}
	for {
		select { // first, for a select of both takes any
		case <-s.o.Lost:
			return 0, s.why()
		case <-s.closed:
			return 0, mihf.ErrClosed
		default:
		}
		select {
		case <-s.o.Lost:
		case <-s.closed:
		case l := <-s.o.Live:
			if n, err := s.take(buf, &l); n > 0 || err != nil {
				return n, err
			}
		}
	}
}

func (s *Stream) why() error {
	if s.o.Why != nil {
		if err := s.o.Why(); err != nil {
			return err
		}
	}
	return ErrLost
}

// take delivers a message and those that wait behind it.
func (s *Stream) take(buf []mihf.Delivery, l *Live) (n int, err error) {
	for {
		switch s.chain.judge(l) {
		case lost:
			s.broken = true // the reader is told at its next call if it gets something now
			if n > 0 {
				return n, nil
			}
			return 0, ErrLost
		case fresh:
			if s.wanted(l) {
				l.Previous, s.last = s.last, l.Sequence()
				buf[n] = l.Delivery
				n++
			}
		case known:
		}
		if n == len(buf) {
			return n, nil
		}
		select {
		case *l = <-s.o.Live:
		default:
			return n, nil
		}
	}
}

// wanted reports whether the request asks for the message. One of a kind that a newer broker
// added has none here.
func (s *Stream) wanted(l *Live) bool {
	r := &s.o.Request
	if l.Kind == mihf.DeliverHint {
		return l.Hint.Kind != 0 && r.WantsHints() && (len(r.Links) == 0 || slices.Contains(r.Links, l.Hint.Link))
	}
	return l.Event.Kind != 0 && r.WantsKind(l.Event.Kind) && (len(r.Links) == 0 || l.Event.Link == "" || slices.Contains(r.Links, l.Event.Link))
}

// Close ends the stream.
func (s *Stream) Close() { s.close() }
