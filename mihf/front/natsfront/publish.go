package natsfront

import (
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/broadcast"
	"mihf.dev/proto/natsproto"
)

// publish sends a message off, or drops and counts it where the server is away. It waits
// for nobody but the connection's own writer.
func (s *Server) publish(m *nats.Msg) error {
	err := nats.ErrDisconnected
	if s.pub().IsConnected() {
		err = s.pub().PublishMsg(m)
	}
	if err != nil {
		s.counts.dropped.Add(1)
	}
	return err
}

// headStart is how old a message is when it is sent to all, where there are sessions: the
// hints of the same moment go to those first.
const headStart = 200 * time.Microsecond

// heard reports whether somebody may listen to a subject. Only of our own server is that
// known; who begins later catches up with what was not published.
func (s *Server) heard(subject string) bool {
	return s.own == nil || s.own.heard(subject)
}

// yield lets the sessions' hints go first.
func (s *Server) yield(at mihf.Time) {
	if young := headStart - s.broker.Now().Sub(at); young > 0 && s.sessions.count() > 0 {
		time.Sleep(young)
	}
}

// send publishes what the broker says to all.
func (s *Server) send(m broadcast.Message) {
	switch m.Kind {
	case mihf.DeliverEvent:
		s.yield(m.Event.At)
		s.sendEvent(natsproto.Event(s.node, m.Event.Link, m.Event.Kind), &m)
	case mihf.DeliverHint:
		s.yield(m.Hint.At)
		s.sendHint(&m)
	case mihf.DeliverSnapshot:
		s.boot.Store(uint32(m.Snapshot.Boot))
		s.hole()
		s.first.Do(func() { close(s.begun) })
	case mihf.DeliverGap:
		s.hole()
	}
}

func (s *Server) sendEvent(subject string, m *broadcast.Message) {
	heard, kept := s.heard(subject), s.own != nil && s.own.kept(subject)
	if !heard && !kept {
		return
	}
	bytes, at, err := s.o.Events.Event(&m.Event)
	if err != nil { // who listens sees the gap by previous
		s.counts.encodeErrors.Add(1)
		s.log.Error("event not published", "sequence", m.Event.Sequence, "kind", m.Event.Kind.String(), "error", err)
		return
	}
	now := s.broker.Now()
	e := natsproto.Envelope{
		Previous: m.Chain, Held: now.Sub(at), Conflated: m.Conflated, At: now, Boot: m.Event.Boot, Sequence: m.Event.Sequence,
	}
	if heard {
		s.toAll(subject, &e, bytes)
	}
	if kept {
		s.keep(subject, &e, bytes)
	}
}

// keep publishes an event where the embedded server's history listens, apart from the users:
// they can have an answer sent to any subject of theirs, and would fill the history.
func (s *Server) keep(subject string, e *natsproto.Envelope, bytes []byte) {
	if !s.svc().IsConnected() || s.svc().PublishMsg(&nats.Msg{Subject: subject, Header: e.Header(), Data: bytes}) != nil {
		s.counts.dropped.Add(1)
	}
}

func (s *Server) sendHint(m *broadcast.Message) {
	all := natsproto.Hint(s.node, m.Hint.Flow, m.Hint.Kind)
	owner := natsproto.OwnerHint(s.node, m.Hint.Owner, m.Hint.Flow, m.Hint.Kind)
	toAll, toOwner := s.heard(all), s.heard(owner)
	if !toAll && !toOwner {
		return
	}
	now := s.broker.Now()
	bytes, ok := s.encodeHint(&m.Hint, now)
	if !ok {
		return
	}
	e := natsproto.Envelope{Previous: m.Chain, At: now, Boot: m.Hint.Boot, Sequence: m.Hint.Sequence}
	if toAll {
		s.toAll(all, &e, bytes)
	}
	if toOwner {
		s.toAll(owner, &e, bytes)
	}
}

// encodeHint encodes a hint.
func (s *Server) encodeHint(h *mihf.Hint, now mihf.Time) ([]byte, bool) {
	bytes, err := proto.Marshal(s.o.Events.HintEncoder(now).Hint(h))
	if err != nil {
		s.counts.encodeErrors.Add(1)
		s.log.Error("hint not published", "sequence", h.Sequence, "kind", h.Kind.String(), "error", err)
		return nil, false
	}
	return bytes, true
}

func (s *Server) toAll(subject string, e *natsproto.Envelope, bytes []byte) {
	if s.publish(&nats.Msg{Subject: subject, Header: e.Header(), Data: bytes}) == nil {
		s.counts.published.Add(1)
	}
}

// hole tells all to read the state again.
func (s *Server) hole() {
	s.counts.holes.Add(1)
	s.sync(natsproto.TypeHole)
}

// sync says something of the node itself.
func (s *Server) sync(t natsproto.Type) {
	e := natsproto.Envelope{Type: t, At: s.broker.Now(), Boot: mihf.BootID(s.boot.Load())}
	_ = s.publish(&nats.Msg{Subject: natsproto.Sync(s.node), Header: e.Header()}) // counted where it failed
}

// deliver publishes on the inbox that a client named.
func (s *Server) deliver(subject string, e *natsproto.Envelope, bytes []byte) error {
	return s.deliverBy(s.publish, subject, e, bytes)
}

func (s *Server) deliverBy(publish func(*nats.Msg) error, subject string, e *natsproto.Envelope, bytes []byte) error {
	e.At = s.broker.Now()
	room := max(int(s.pub().MaxPayload())-maxHeader, minPart)
	parts := max((len(bytes)+room-1)/room, 1)
	for n := range parts {
		part := bytes[n*room : min((n+1)*room, len(bytes))]
		if parts > 1 {
			e.Part = natsproto.Part{N: n + 1, Of: parts}
		}
		if err := publish(&nats.Msg{Subject: subject, Header: e.Header(), Data: part}); err != nil {
			return err
		}
	}
	return nil
}

// Sizes of messages.
const (
	maxHeader = 4 << 10 // octets kept free for headers
	minPart   = 16 << 10
)
