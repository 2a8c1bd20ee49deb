package modem

import (
	"errors"
	"time"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
)

const (
	// setupEvery is the least time between two settings of the polling.
	setupEvery            = 10 * time.Second
	retrySetup, retryMost = 10 * time.Second, 5 * time.Minute
)

// setup is how one modem's signal is asked for, as an object of ModemManager: another object
// of the same modem begins anew. It is pure.
type setup struct {
	cfg    *config
	asking bool
	nextAt mihf.Time // not before
	gap    time.Duration

	thresholds  tried
	polling     tried
	rateBefore  uint32 // what stood before ours
	denied      bool   // the polling was refused for want of a permission
	thresholded bool   // by us or others
}

// tried is what came of a request.
type tried uint8

const (
	untried tried = iota
	taken
	refused
)

// read takes what a reading says of the settings.
func (s *setup) read(now mihf.Time, m *modem) {
	i := &m.info
	s.thresholded = i.threshold > 0 || s.thresholds == taken
	if s.thresholds == taken && i.threshold == 0 && m.cfg.threshold > 0 {
		s.thresholds, s.thresholded = untried, false // somebody took them back, or they did not last
		s.nextAt = max(s.nextAt, now.Add(setupEvery))
	}
}

// want returns what is to be asked of the modem now; callNone: nothing.
func (s *setup) want(now mihf.Time, m *modem) (callKind, uint32) {
	if s.asking || now.Before(s.nextAt) || !m.info.signals || m.info.state < stateEnabled || s.cfg.isNever(&m.info) {
		return callNone, 0
	}
	every := uint32(s.cfg.poll / time.Second)
	switch {
	case s.cfg.threshold > 0 && s.thresholds == untried && !s.thresholded:
		return callThresholds, s.cfg.threshold
	case every > 0 && !s.thresholded && s.polling != refused && (m.info.rate == 0 || m.info.rate > every):
		return callPolling, every
	}
	return callNone, 0
}

// answered takes the answer to what want returned.
func (s *setup) answered(now mihf.Time, m *modem, c call, err error) {
	s.asking = false
	result := taken
	switch v := verdictOf(err); {
	case err == nil:
		s.gap = 0
		s.nextAt = now.Add(setupEvery)
		if c.kind == callThresholds {
			s.nextAt = now // polling, should they not last
		}
	case v == verdictRefused, v == verdictDenied, v == verdictGone: // whether the object is gone, the list says
		m.cfg.count.refused.Add(1)
		result = refused
		s.denied = v == verdictDenied && c.kind == callPolling
	default:
		s.gap = min(max(2*s.gap, retrySetup), retryMost)
		s.nextAt = now.Add(s.gap)
		return
	}
	if c.kind == callThresholds {
		s.thresholds = result
		s.thresholded = s.thresholded || result == taken
		if result == taken {
			m.info.threshold = c.arg // until the next reading says so
		}
		return
	}
	if result == taken && s.polling != taken {
		s.rateBefore = m.info.rate
	}
	s.polling = result
	if result == taken {
		m.info.rate = c.arg
	}
}

// restore returns what takes our settings back. What others have set since stays.
func (s *setup) restore(m *modem) (list []call) {
	if s.thresholds == taken && m.info.threshold == s.cfg.threshold {
		list = append(list, call{kind: callThresholds, path: m.path})
	}
	if s.polling == taken && m.info.rate == uint32(s.cfg.poll/time.Second) {
		list = append(list, call{kind: callPolling, path: m.path, arg: s.rateBefore})
	}
	return list
}

// complaint says what is missing; "": nothing.
func (s *setup) complaint() string {
	switch {
	case s.denied:
		return "we may not ask for signal readings (polkit, org.freedesktop.ModemManager1.Device.Control): only the percentage is known"
	case s.polling == refused && !s.thresholded:
		return "it gives no signal readings: only the percentage is known"
	}
	return ""
}

// verdict says what an error of a call means.
type verdict uint8

const (
	verdictFailed  verdict = iota // this time
	verdictGone                   // the object, interface or method is not there
	verdictRefused                // it will not do that
	verdictDenied                 // we may not
	verdictSilent                 // no answer
)

var verdicts = map[string]verdict{
	"org.freedesktop.DBus.Error.UnknownObject":    verdictGone,
	"org.freedesktop.DBus.Error.UnknownInterface": verdictGone,
	"org.freedesktop.DBus.Error.UnknownMethod":    verdictGone,
	"org.freedesktop.DBus.Error.NotSupported":     verdictRefused,
	"org.freedesktop.DBus.Error.InvalidArgs":      verdictRefused,
	"org.freedesktop.DBus.Error.AccessDenied":     verdictDenied,
	"org.freedesktop.DBus.Error.AuthFailed":       verdictDenied,
	"org.freedesktop.DBus.Error.NoReply":          verdictSilent,
	"org.freedesktop.DBus.Error.Timeout":          verdictSilent,
	"org.freedesktop.DBus.Error.TimedOut":         verdictSilent,
	service + ".Error.Core.Unsupported":           verdictRefused,
	service + ".Error.Core.InvalidArgs":           verdictRefused,
	service + ".Error.Core.Unauthorized":          verdictDenied,
}

func verdictOf(err error) verdict {
	if err == nil {
		return verdictFailed
	}
	if remote, ok := errors.AsType[dbus.Error](err); ok {
		return verdicts[remote.Name]
	}
	return verdictSilent
}
