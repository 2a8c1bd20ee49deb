package natsfront

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/broadcast"
	"mihf.dev/mihf/front/service"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/natsproto"
)

// requestTimeout bounds what a request may take.
const requestTimeout = 5 * time.Second

// arrived takes a message off the connection. It does not block.
func (s *Server) arrived(m *nats.Msg) {
	s.counts.requests.Add(1)
	j := job{msg: m, size: m.Size(), op: operation(m.Subject)}
	if j.op == opNodes {
		s.answer(&j, natsproto.Text, []byte(s.node), nil)
		return
	}
	var err error
	if j.who, j.inbox, err = s.who.of(m.Header); err != nil {
		s.counts.forged.Add(1)
		s.refuse(&j, natsproto.AsProtobuf, err)
		return
	}
	if len(m.Data) > natsproto.MaxRequest || j.size > maxMessage { // refused before it waits: what waits is bounded
		s.refuse(&j, natsproto.AsProtobuf, fmt.Errorf("%w: a request of %d octets, %d with its headers; at most %d and %d", mihf.ErrLimit, len(m.Data), j.size, natsproto.MaxRequest, maxMessage))
		return
	}
	if !s.queue.add(j) {
		s.refuse(&j, natsproto.AsProtobuf, fmt.Errorf("%w: %s has too many requests waiting: at most %d, of %d octets together; see [nats] max_waiting_per_user", mihf.ErrLimit, j.who.Name, s.o.MaxQueued, maxOctetsOfCaller))
	}
}

// maxMessage bounds a request with its headers and subjects, in octets.
const maxMessage = natsproto.MaxRequest + 8<<10

// opNodes is not of a node: it asks who is there.
const opNodes = "nodes"

func operation(subject string) string {
	if subject == natsproto.Nodes {
		return opNodes
	}
	return subject[strings.LastIndexByte(subject, '.')+1:]
}

// call is a request with its headers read.
type call struct {
	*job
	natsproto.Request
	ctx context.Context
}

// do does a request and answers it.
func (s *Server) do(j *job) {
	ctx, cancel := context.WithTimeout(s.sessions.life, requestTimeout)
	defer cancel()
	c := call{job: j, ctx: ctx}
	var err error
	defer func() {
		if p := recover(); p != nil {
			s.counts.panics.Add(1)
			s.log.Error("panic in a request", "operation", j.op, "panic", p, "stack", string(debug.Stack()))
			s.refuse(j, c.Answer, errors.New("internal error; see the daemon's log"))
		}
	}()
	c.Request, err = natsproto.ParseRequest(j.msg.Header)
	if err != nil {
		s.malformed(j, err)
		s.refuse(j, c.Answer, err)
		return
	}
	answer, headers, err := s.perform(&c)
	if errors.Is(err, mihf.ErrInvalid) {
		s.malformed(j, err)
	}
	if err != nil {
		s.refuse(j, c.Answer, err)
		return
	}
	if answer == nil {
		return
	}
	bytes, contentType, err := c.Answer.Encode(answer)
	if err == nil && len(bytes) > int(s.svc().MaxPayload())-maxHeader {
		err = fmt.Errorf("%w: the answer has %d octets, more than the NATS server takes; %s gives it in parts", mihf.ErrLimit, len(bytes), natsproto.OpResume)
	}
	if err != nil {
		s.refuse(j, c.Answer, err)
		return
	}
	s.answer(j, contentType, bytes, headers)
}

// perform returns the answer; none of both: there is nothing to say.
func (s *Server) perform(c *call) (proto.Message, natsproto.Header, error) {
	switch c.op {
	case natsproto.OpSnapshot:
		m, err := answered(c, s.service().GetSnapshot)
		return m, nil, err
	case natsproto.OpResume:
		return s.resume(c)
	case natsproto.OpRegister, natsproto.OpHeartbeat, natsproto.OpUnregister, natsproto.OpUpdate, natsproto.OpAck:
		return s.inSession(c)
	case natsproto.OpCommand, natsproto.OpInfo, natsproto.OpAdmin:
		m, err := s.method(c)
		return m, nil, err
	}
	return nil, nil, fmt.Errorf("%w: no operation %.40q", mihf.ErrInvalid, c.op)
}

// service answers requests as those on the server are told.
func (s *Server) service() service.Service { return service.Of(s.broker, s.o.Events) }

// message is a pointer to a protobuf message.
type message[Q any] interface {
	*Q
	proto.Message
}

// answered reads a request of the service and has it answered.
func answered[Q any, P message[Q], A proto.Message](c *call, f func(context.Context, mihf.Caller, P) (A, error)) (proto.Message, error) {
	var q Q
	if err := c.Decode(c.msg.Data, P(&q)); err != nil {
		return nil, err
	}
	a, err := f(c.ctx, c.who, &q)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// method does what names a method.
func (s *Server) method(c *call) (proto.Message, error) {
	names := methods[c.op]
	name := c.Method
	if name == "" && names[0] != "" {
		name = names[0]
	}
	for _, m := range names {
		if m != "" && m == name {
			return s.methodNamed(c, name)
		}
	}
	return nil, fmt.Errorf("%w: header %s: %s has no method %.40q; it has%s", mihf.ErrInvalid, natsproto.HeaderMethod, c.op, name, list(names))
}

// methods are those of an operation; the first is meant where none is named, unless it is
// "".
var methods = map[string][]string{
	natsproto.OpCommand: {"", natsproto.MethodGetParameters, natsproto.MethodConfigureThresholds},
	natsproto.OpInfo:    {natsproto.MethodGetInformation},
	natsproto.OpAdmin:   {natsproto.MethodStatus, natsproto.MethodExplain, natsproto.MethodRecord},
}

func list(names []string) string {
	var b strings.Builder
	for _, n := range names {
		if n != "" {
			b.WriteString(" " + n)
		}
	}
	return b.String()
}

func (s *Server) methodNamed(c *call, name string) (proto.Message, error) {
	switch name {
	case natsproto.MethodGetParameters:
		return answered(c, s.service().GetParameters)
	case natsproto.MethodConfigureThresholds:
		return answered(c, s.service().ConfigureThresholds)
	case natsproto.MethodGetInformation:
		return answered(c, s.service().GetInformation)
	case natsproto.MethodExplain:
		return answered(c, s.service().Explain)
	case natsproto.MethodRecord:
		return s.record(c)
	default:
		return answered(c, s.service().Status)
	}
}

// resume delivers what a subscription that begins now gives of what was published already.
// Without a place to deliver to it says what the caller may listen to.
func (s *Server) resume(c *call) (proto.Message, natsproto.Header, error) {
	var p mihv1.SubscribeRequest
	if err := c.Decode(c.msg.Data, &p); err != nil {
		return nil, nil, err
	}
	q, err := conv.DecodeSubscribe(&p)
	if err != nil {
		return nil, nil, err
	}
	grant := s.o.Grant(c.who)
	headers := natsproto.Header{}
	if owner, known := grant.Owner.Get(); grant.AllHints {
		headers[natsproto.HeaderHints] = []string{natsproto.Hints(s.node)}
	} else if known {
		headers[natsproto.HeaderHints] = []string{natsproto.OwnerHints(s.node, owner)}
	}
	if c.Deliver == "" {
		_, err := s.broker.Status(c.ctx, c.who) // who may not see is refused
		return &mihv1.Done{}, headers, err
	}
	if err := natsproto.CheckInbox(c.Deliver, c.inbox); err != nil {
		return nil, nil, err
	}
	reached, err := broadcast.CatchUp(c.ctx, s.broker, c.who, q, func(d *mihf.Delivery) error { return s.deliverPast(c, d) })
	if err != nil {
		return nil, nil, err
	}
	e := natsproto.Envelope{Type: natsproto.TypeEnd, Boot: reached.Boot, Sequence: reached.Sequence}
	if err := s.deliver(c.Deliver, &e, nil); err != nil {
		return nil, nil, err
	}
	return &mihv1.Done{}, headers, nil
}

// deliverPast delivers one item of what was published already.
func (s *Server) deliverPast(c *call, d *mihf.Delivery) error {
	e := natsproto.Envelope{Previous: d.Previous, Conflated: d.Conflated, Sequence: d.Sequence()}
	var m proto.Message
	switch d.Kind {
	case mihf.DeliverEvent:
		bytes, at, err := s.o.Events.Event(&d.Event)
		if err != nil {
			s.counts.encodeErrors.Add(1)
			return err
		}
		e.Type, e.Held = natsproto.TypeEvent, s.broker.Now().Sub(at)
		return s.deliver(c.Deliver, &e, bytes)
	case mihf.DeliverHint:
		e.Type, m = natsproto.TypeHint, s.o.Events.HintEncoder(s.broker.Now()).Hint(&d.Hint)
	case mihf.DeliverSnapshot:
		e.Type, m = natsproto.TypeSnapshot, s.o.Events.Encoder().Snapshot(d.Snapshot)
	case mihf.DeliverGap:
		e.Type, m = natsproto.TypeGap, conv.EncodeGap(&d.Gap)
	}
	bytes, err := proto.Marshal(m)
	if err != nil {
		s.counts.encodeErrors.Add(1)
		return fmt.Errorf("encode %s: %w", e.Type, err)
	}
	return s.deliver(c.Deliver, &e, bytes)
}

// malformed counts a malformed request, and logs the first one of each operation.
func (s *Server) malformed(j *job, err error) {
	s.counts.malformed.Add(1)
	op := j.op
	if !known(op) {
		op = "unknown"
	}
	if _, named := s.named.LoadOrStore(op, true); !named {
		s.log.Warn("malformed request", "operation", op, "error", err)
	}
}

func known(op string) bool {
	switch op {
	case natsproto.OpSnapshot, natsproto.OpRegister, natsproto.OpHeartbeat, natsproto.OpUnregister, natsproto.OpUpdate,
		natsproto.OpAck, natsproto.OpCommand, natsproto.OpInfo, natsproto.OpAdmin, natsproto.OpResume:
		return true
	}
	return false
}

// refuse answers with an error.
func (s *Server) refuse(j *job, coding natsproto.Coding, err error) {
	s.counts.refused.Add(1)
	code, bytes, contentType := coding.Refuse(err)
	s.answer(j, contentType, bytes, natsproto.Header{natsproto.HeaderError: {code}})
}

// answer answers a request, if it wants one and says a place that may be answered to.
func (s *Server) answer(j *job, contentType string, bytes []byte, h natsproto.Header) {
	to := j.msg.Reply
	if to == "" || (s.own == nil && natsproto.CheckReply(to) != nil) {
		return
	}
	if h == nil {
		h = natsproto.Header{}
	}
	h[natsproto.HeaderContentType] = []string{contentType}
	h[natsproto.HeaderAt] = []string{fmt.Sprint(int64(s.broker.Now()))}
	if b := mihf.BootID(s.boot.Load()); b != 0 {
		h[natsproto.HeaderBoot] = []string{b.String()}
	}
	if !s.svc().IsConnected() || s.svc().PublishMsg(&nats.Msg{Subject: to, Header: h, Data: bytes}) != nil {
		s.counts.dropped.Add(1)
	}
}
