package modem

import (
	"context"
	"errors"

	"github.com/godbus/dbus/v5"
)

// ask asks ModemManager something; the answer goes to the inbox.
func (s *session) ask(ctx context.Context, c call) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	if s.pending[c.path] == nil {
		s.pending[c.path] = make(map[callKind]context.CancelFunc)
	}
	s.pending[c.path][c.kind] = cancel
	owner := s.state.owner
	s.sensor.count.calls.Add(1)
	s.calls.Go(func() {
		defer cancel()
		body, err := s.call(ctx, owner, c)
		s.box.answer(answer{call: c, body: body, err: err})
	})
}

func (s *session) call(ctx context.Context, owner string, c call) ([]any, error) {
	switch c.kind {
	case callBearer:
		return s.bus.Call(ctx, owner, c.path, properties+".GetAll", bearerInterface)
	case callThresholds:
		return s.bus.Call(ctx, owner, c.path, signalInterface+".SetupThresholds", dict{"rssi-threshold": dbus.MakeVariant(c.arg)})
	case callPolling:
		return s.bus.Call(ctx, owner, c.path, signalInterface+".Setup", c.arg)
	case callCell:
		return s.bus.Call(ctx, owner, c.path, locationInterface+".GetLocation")
	default:
		return s.bus.Call(ctx, owner, rootPath, objectManager+".GetManagedObjects")
	}
}

// done takes note that a call has ended.
func (s *session) done(a *answer) {
	if a.err != nil && verdictOf(a.err) == verdictSilent && !errors.Is(a.err, context.Canceled) {
		s.sensor.count.unanswered.Add(1)
	}
	delete(s.pending[a.path], a.kind)
	if len(s.pending[a.path]) == 0 {
		delete(s.pending, a.path)
	}
}

// forget gives up calls to objects that are not there any more.
func (s *session) forget() {
	for path, calls := range s.pending {
		if s.state.has(path) {
			continue
		}
		for _, cancel := range calls {
			cancel()
		}
	}
}

// restore takes back what was set in ModemManager, as far as it answers in time.
func (s *session) restore(ctx context.Context) {
	if s.state.owner == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, m := range s.state.ordered() {
		for _, c := range m.setup.restore(m) {
			s.sensor.count.calls.Add(1)
			if _, err := s.call(ctx, s.state.owner, c); err != nil {
				s.sensor.opt.Log.Info("ModemManager keeps our signal settings", "modem", m.name(), "error", err.Error())
			}
		}
	}
}
