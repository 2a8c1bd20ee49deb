package dbusfront

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/mihf/busconn"
	"mihf.dev/proto/dbusapi"
)

// answer is what a call gives.
type answer struct {
	args  []any
	after func() // when it was sent; nil: nothing to do
}

func give(args ...any) (answer, error) { return answer{args: args}, nil }

// refusal is an error with a name of D-Bus's own.
type refusal struct{ name, text string }

func (r *refusal) Error() string { return r.text }

func refuse(name, format string, args ...any) error {
	return &refusal{name, fmt.Sprintf(format, args...)}
}

// do does one call and answers it.
func (p *peer) do(c *busconn.Call) {
	select {
	case p.b.s.turn <- struct{}{}:
		defer func() { <-p.b.s.turn }()
	case <-p.ctx.Done():
	}
	if p.ctx.Err() != nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			p.b.s.counts.panics.Add(1)
			p.b.s.log.Error("panic in a call", "method", c.Member, "panic", v, "stack", string(debug.Stack()))
			p.refuse(c, dbusapi.ErrorFailed, "internal error; see the daemon's log")
		}
	}()
	a, err := p.handle(c)
	if a.after != nil {
		defer a.after()
	}
	if err == nil {
		p.reply(c, a.args...)
		return
	}
	name := dbusapi.ErrorName(err)
	if r, ok := errors.AsType[*refusal](err); ok {
		name = r.name
		p.b.s.malformed(c.Member, err)
	} else if errors.Is(err, mihf.ErrInvalid) {
		p.b.s.malformed(c.Member, err)
	}
	p.refuse(c, name, err.Error())
}

// malformed counts a malformed call, and logs the first one of each method that exists.
func (s *Server) malformed(method string, err error) {
	s.counts.malformed.Add(1)
	if _, ok := methods[method]; !ok {
		method = "other"
	}
	if _, named := s.named.LoadOrStore(method, true); !named {
		s.log.Warn("malformed call", "method", method, "error", err)
	}
}

// unread counts a message that was not read.
func (s *Server) unread(why error) {
	if errors.Is(why, busconn.ErrTooLarge) {
		s.counts.oversized.Add(1)
	}
}

// handle finds the method and checks the arguments' types.
func (p *peer) handle(c *busconn.Call) (answer, error) {
	if c.Interface == dbusapi.Peer {
		return peerMethod(c)
	}
	who, err := p.identify()
	if err != nil {
		return answer{}, err
	}
	o, err := p.find(who, c.Path)
	if err != nil {
		return answer{}, err
	}
	where, signature, found, known := o.kind.Find(c.Interface, c.Member)
	switch {
	case !known:
		return answer{}, refuse(dbusapi.ErrorUnknownInterface, "%s has no interface %.80q", c.Path, c.Interface)
	case !found:
		return answer{}, refuse(dbusapi.ErrorUnknownMethod, "%s has no method %.80q", c.Path, c.Member)
	case signature != c.Signature:
		return answer{}, refuse(dbusapi.ErrorInvalidArgs, "%s: the arguments are %.80q, want %q", c.Member, c.Signature, signature)
	}
	args, err := c.Args()
	if err != nil {
		return answer{}, refuse(dbusapi.ErrorInvalidArgs, "%s: %v", c.Member, err)
	}
	switch where {
	case dbusapi.Introspectable:
		return o.introspect()
	case dbusapi.Properties:
		return o.property(c, args)
	case dbusapi.ObjectManager:
		return p.managed(who)
	}
	return methods[c.Member](p, who, args)
}

// method is one of [dbusapi.BrokerInterface]. The types of the arguments are right.
type method func(p *peer, who mihf.Caller, args []any) (answer, error)

var methods = map[string]method{
	dbusapi.MethodGetSnapshot:         (*peer).getSnapshot,
	dbusapi.MethodResume:              (*peer).resume,
	dbusapi.MethodGetParameters:       (*peer).getParameters,
	dbusapi.MethodGetInformation:      (*peer).getInformation,
	dbusapi.MethodStatus:              (*peer).status,
	dbusapi.MethodExplain:             (*peer).explain,
	dbusapi.MethodConfigureThresholds: (*peer).configureThresholds,
	dbusapi.MethodSubscribe:           (*peer).subscribe,
	dbusapi.MethodRecord:              (*peer).record,
	dbusapi.MethodCloseStream:         (*peer).closeStream,
	dbusapi.MethodRegisterFlow:        (*peer).registerFlow,
	dbusapi.MethodUnregisterFlow:      (*peer).unregisterFlow,
	dbusapi.MethodUpdateFlow:          (*peer).updateFlow,
	dbusapi.MethodAcknowledge:         (*peer).acknowledge,
}

// peerMethod is the interface that every object of every connection has.
func peerMethod(c *busconn.Call) (answer, error) {
	switch {
	case c.Member == "Ping" && c.Signature == "":
		return give()
	case c.Member == "GetMachineId" && c.Signature == "":
		id, err := machineID()
		if err != nil {
			return answer{}, err
		}
		return give(id)
	}
	return answer{}, refuse(dbusapi.ErrorUnknownMethod, "%s has no method %.80q of type %.80q", dbusapi.Peer, c.Member, c.Signature)
}

func dictOf(v any) map[string]dbus.Variant {
	d, _ := v.(map[string]dbus.Variant)
	return d
}
