package modem

import (
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// eventKind says what a signal tells.
type eventKind uint8

const (
	eventNone    eventKind = iota // nothing of interest
	eventChanged                  // properties changed, or an object appeared
	eventRemoved                  // a modem is gone
	eventState                    // a modem's state changed
)

// event is what a signal tells.
type event struct {
	kind   eventKind
	sender string          // unique name
	path   dbus.ObjectPath // of the object that it is about
	state  int32           // eventState: the new one
	reason uint32          // eventState
}

var errMeaningless = errors.New("a signal makes no sense")

// interesting are the interfaces whose properties are read.
var interesting = map[string]bool{
	modemInterface: true, gppInterface: true, signalInterface: true, locationInterface: true, bearerInterface: true,
}

// decodeEvent reads a signal. Who sent it is for the caller to judge.
func decodeEvent(s *dbus.Signal) (event, error) {
	e := event{sender: s.Sender, path: s.Path}
	err := error(nil)
	switch s.Name {
	case objectManager + ".InterfacesAdded":
		var path dbus.ObjectPath
		if path, err = first(s.Body); err == nil {
			e.kind, e.path = eventChanged, path
		}
	case objectManager + ".InterfacesRemoved":
		var list []string
		if err = dbus.Store(s.Body, &e.path, &list); err != nil {
			break
		}
		e.kind = eventChanged
		for _, name := range list {
			if name == modemInterface {
				e.kind = eventRemoved
			}
		}
	case properties + ".PropertiesChanged":
		var name string
		if len(s.Body) > 0 {
			name, _ = s.Body[0].(string)
		}
		if name == "" {
			err = errMeaningless
		} else if interesting[name] {
			e.kind = eventChanged
		}
	case modemInterface + ".StateChanged":
		var old int32
		if err = dbus.Store(s.Body, &old, &e.state, &e.reason); err == nil {
			e.kind = eventState
		}
	}
	if err != nil {
		return event{}, fmt.Errorf("%s: %w", s.Name, err)
	}
	return e, nil
}

// first returns the object that a signal of the object manager begins with.
func first(body []any) (dbus.ObjectPath, error) {
	if len(body) > 0 {
		if path, ok := body[0].(dbus.ObjectPath); ok {
			return path, nil
		}
	}
	return "", errMeaningless
}
