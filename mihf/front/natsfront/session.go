package natsfront

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/service"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/natsproto"
)

// sessionKey names a session: an id means something to its caller only.
type sessionKey struct{ caller, id string }

// session is what a client holds while it says that it is there: an attachment, or a
// recording.
type session struct {
	key     sessionKey
	deliver string          // the client's inbox
	at      mihf.Attachment // nil: a recording
	end     func()          // may be called more than once
	lapse   *time.Timer
}

// sessions are the open ones.
type sessions struct {
	life    context.Context // of those that are opened; set by Run
	readers *sync.WaitGroup // set by Run

	mu     sync.Mutex // guards the following
	open   map[sessionKey]*session
	owned  map[string]int // of each caller
	closed bool
}

func (t *sessions) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// get returns a session that is there, and takes it for alive.
func (t *sessions) get(k sessionKey, lifetime time.Duration) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.open[k]
	if x != nil {
		x.lapse.Reset(lifetime)
	}
	return x
}

// add takes a new one and runs what serves it. It fails where the caller has too many, or
// this one already.
func (t *sessions) add(x *session, limit int, run func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return fmt.Errorf("%w: the daemon ends", mihf.ErrClosed)
	case t.open[x.key] != nil:
		return fmt.Errorf("%w: session %s", mihf.ErrExists, x.key.id)
	case t.owned[x.key.caller] >= limit:
		return fmt.Errorf("%w: %s has %d sessions; see [nats] max_sessions_per_user", mihf.ErrLimit, x.key.caller, limit)
	}
	t.open[x.key] = x
	t.owned[x.key.caller]++
	t.readers.Go(run)
	return nil
}

// close lets no more sessions begin.
func (t *sessions) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

func (t *sessions) remove(x *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x.lapse.Stop()
	if t.open[x.key] != x {
		return
	}
	delete(t.open, x.key)
	if t.owned[x.key.caller]--; t.owned[x.key.caller] == 0 {
		delete(t.owned, x.key.caller)
	}
}

// inSession does the operations of a session.
func (s *Server) inSession(c *call) (proto.Message, natsproto.Header, error) {
	x, err := s.session(c)
	if err != nil {
		return nil, nil, err
	}
	var m proto.Message = &mihv1.Done{}
	switch c.op {
	case natsproto.OpHeartbeat:
		return m, natsproto.Header{natsproto.HeaderLifetime: {strconv.FormatInt(int64(s.o.Lifetime), 10)}}, nil
	case natsproto.OpRegister:
		m, err = answered(c, func(_ context.Context, _ mihf.Caller, q *mihv1.FlowSpec) (*mihv1.Registration, error) {
			return service.Register(x.at, q)
		})
	case natsproto.OpUpdate:
		err = inFlow(c, x, service.Update)
	case natsproto.OpUnregister:
		err = s.unregister(c, x)
	case natsproto.OpAck:
		if err = inFlow(c, x, service.Acknowledge); err != nil && c.msg.Reply == "" {
			s.failed(x, err)
		}
		if err == nil && c.msg.Reply == "" {
			m = nil
		}
	}
	return m, nil, err
}

// session returns the session of a request; it is opened where there is none and the
// request says where to deliver.
func (s *Server) session(c *call) (*session, error) {
	if c.Session == "" {
		return nil, fmt.Errorf("%w: header %s is needed", mihf.ErrInvalid, natsproto.HeaderSession)
	}
	key := sessionKey{c.who.Name, c.Session}
	if x := s.sessions.get(key, s.o.Lifetime); x != nil {
		if x.at == nil && c.op != natsproto.OpHeartbeat && c.op != natsproto.OpUnregister {
			return nil, fmt.Errorf("%w: session %s is a recording", mihf.ErrInvalid, c.Session)
		}
		return x, nil
	}
	if c.Deliver == "" {
		return nil, fmt.Errorf("%w: session %s; header %s opens it", mihf.ErrNotFound, c.Session, natsproto.HeaderDeliver)
	}
	return s.open(c, key)
}

// open opens a session with an attachment.
func (s *Server) open(c *call, key sessionKey) (*session, error) {
	if err := natsproto.CheckInbox(c.Deliver, c.inbox); err != nil {
		return nil, err
	}
	at, err := s.broker.Attach(s.sessions.life, c.who)
	if err != nil {
		return nil, err
	}
	x := &session{key: key, deliver: c.Deliver, at: at, end: at.Close}
	err = s.begin(x, func() {
		err := s.hints(x)
		s.sessions.remove(x)
		s.said(x, err, nil)
	})
	if err != nil {
		at.Close()
		return nil, err
	}
	return x, nil
}

// begin lets a session live until it lapses, and run serve it.
func (s *Server) begin(x *session, run func()) error {
	x.lapse = time.AfterFunc(s.o.Lifetime, func() {
		s.counts.lapsed.Add(1)
		s.sessions.remove(x)
		x.end()
	})
	err := s.sessions.add(x, s.o.MaxSessions, run)
	if err != nil {
		x.lapse.Stop()
	}
	return err
}

// hints delivers an attachment's hints until it ends.
func (s *Server) hints(x *session) error {
	var buf [8]mihf.Delivery
	l := newLetter(x.deliver)
	for {
		n, err := x.at.Next(buf[:])
		if err != nil {
			return err
		}
		for i := range buf[:n] {
			s.sendOwn(x, l, &buf[i])
		}
	}
}

// toSession publishes on the inbox of a session: all of an attachment goes one way, so that it
// keeps its order, and all of a recording.
func (s *Server) toSession(x *session, m *nats.Msg) error {
	d := s.link.Load().direct
	if d == nil || x.at == nil {
		return s.publish(m)
	}
	err := d.publish(m)
	if err != nil {
		s.counts.dropped.Add(1)
	}
	return err
}

// sendOwn delivers one. What is not published shows to the client by Previous.
func (s *Server) sendOwn(x *session, l *letter, d *mihf.Delivery) {
	switch d.Kind {
	case mihf.DeliverHint:
		m, err := l.write(d, s.o.Events.HintEncoder(s.broker.Now()))
		if err != nil {
			s.counts.encodeErrors.Add(1)
			s.log.Error("hint not published", "sequence", d.Hint.Sequence, "kind", d.Hint.Kind.String(), "error", err)
			return
		}
		if s.toSession(x, m) == nil {
			s.counts.hints.Add(1)
		}
	case mihf.DeliverGap:
		b, err := proto.Marshal(conv.EncodeGap(&d.Gap))
		if err != nil {
			s.counts.encodeErrors.Add(1)
			return
		}
		publish := func(m *nats.Msg) error { return s.toSession(x, m) }
		_ = s.deliverBy(publish, x.deliver, &natsproto.Envelope{Type: natsproto.TypeGap, Previous: d.Previous}, b) // counted where it failed
	default: // an attachment has nothing else
	}
}

// said tells the client that its session has ended.
func (s *Server) said(x *session, why error, last proto.Message) {
	e := natsproto.Envelope{Type: natsproto.TypeEnd}
	h := e.Header()
	var bytes []byte
	if last != nil {
		bytes, _ = proto.Marshal(last) // two numbers
	}
	if why != nil {
		code, text, contentType := natsproto.AsProtobuf.Refuse(why)
		h[natsproto.HeaderError], h[natsproto.HeaderContentType] = []string{code}, []string{contentType}
		bytes = text
	}
	_ = s.toSession(x, &nats.Msg{Subject: x.deliver, Header: h, Data: bytes}) // counted where it failed
}

// failed tells the client that an acknowledgement was refused.
func (s *Server) failed(x *session, why error) {
	e := natsproto.Envelope{Type: natsproto.TypeFailed}
	h := e.Header()
	code, text, contentType := natsproto.AsProtobuf.Refuse(why)
	h[natsproto.HeaderError], h[natsproto.HeaderContentType] = []string{code}, []string{contentType}
	_ = s.toSession(x, &nats.Msg{Subject: x.deliver, Header: h, Data: text}) // counted where it failed
}

// unregister ends the registration of a flow or, where none is named, the session.
func (s *Server) unregister(c *call, x *session) error {
	if len(c.msg.Data) == 0 || x.at == nil {
		s.sessions.remove(x)
		x.end()
		return nil
	}
	return inFlow(c, x, service.Unregister)
}

// inFlow reads a request about a flow of the session's attachment and does it.
func inFlow[Q any, P message[Q]](c *call, x *session, f func(mihf.Attachment, P) error) error {
	var q Q
	if err := c.Decode(c.msg.Data, P(&q)); err != nil {
		return err
	}
	return f(x.at, &q)
}

// record delivers observations until its session ends.
func (s *Server) record(c *call) (proto.Message, error) {
	if err := c.Decode(c.msg.Data, &mihv1.RecordRequest{}); err != nil {
		return nil, err
	}
	if c.Session == "" || c.Deliver == "" {
		return nil, fmt.Errorf("%w: headers %s and %s are needed", mihf.ErrInvalid, natsproto.HeaderSession, natsproto.HeaderDeliver)
	}
	if err := natsproto.CheckInbox(c.Deliver, c.inbox); err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(s.sessions.life)
	x := &session{key: sessionKey{c.who.Name, c.Session}, deliver: c.Deliver, end: end}
	who := c.who
	if err := s.begin(x, func() { s.recording(ctx, who, x) }); err != nil {
		end()
		return nil, err
	}
	return &mihv1.Done{}, nil
}

// recording delivers what the broker takes, and at the end why it ended or how much was
// missed.
func (s *Server) recording(ctx context.Context, who mihf.Caller, x *session) {
	defer x.end()
	lost, err := s.broker.Record(ctx, who, func(o *mihf.Observation) error {
		bytes, err := proto.Marshal(s.o.Events.Encoder().Observation(o))
		if err != nil {
			s.counts.encodeErrors.Add(1)
			return nil //nolint:nilerr // counted; the others go on
		}
		e := natsproto.Envelope{Type: natsproto.TypeObservation}
		return s.deliver(x.deliver, &e, bytes)
	})
	s.sessions.remove(x)
	if ctx.Err() != nil {
		err = nil
	}
	s.said(x, err, &mihv1.RecordResponse{Item: &mihv1.RecordResponse_Lost{Lost: lost}})
}
