package medium

import (
	"errors"
	"fmt"
	"io"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/recording"
)

// A pause of a trace longer than this is silence, not an even change.
const longestPause = 5 * time.Second

// ReadTrace makes a signal of what a recording or trace says of a point of attachment: its
// RSSI, else RSRP, as the serving one or one that was heard; "" is any serving one. A true loss is silence
// until its end. Behind the last reading nothing is heard. The time is that of the recording.
func ReadTrace(src recording.Source, poa mihf.PoA) (Script, error) {
	var s Script
	var silentTo time.Duration
	for {
		var o mihf.Observation
		err := src.Read(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("medium: a trace: %w", err)
		}
		at := o.At.Sub(recording.Base)
		if until, ok := lossUntil(&o); ok {
			silentTo = until
			if len(s) > 0 {
				s = append(s, Point{At: at, Silent: true})
			}
		}
		if dBm, ok := reading(&o, poa); ok && at >= silentTo {
			s = s.withReading(at, dBm)
		}
	}
	if len(s) == 0 {
		return nil, fmt.Errorf("medium: a trace: no signal of %q", poa)
	}
	return append(s, Point{At: s[len(s)-1].At + time.Nanosecond, Silent: true}), nil
}

// withReading adds a reading, and silence before it where the last one is too long ago.
func (s Script) withReading(at time.Duration, dBm float64) Script {
	if n := len(s); n > 0 && at-s[n-1].At > longestPause && !s[n-1].Silent {
		s = append(s, Point{At: s[n-1].At + time.Nanosecond, Silent: true})
	}
	return append(s, Point{At: at, DBm: dBm})
}

// reading is the signal that an observation has of a point of attachment.
func reading(o *mihf.Observation, poa mihf.PoA) (dBm float64, ok bool) {
	values := &o.Values
	switch {
	case o.Kind == mihf.ObsRadio && (poa == "" || o.PoA == poa):
	case o.Kind == mihf.ObsDetected && o.Detected.PoA == poa:
		values = &o.Detected.Values
	default:
		return 0, false
	}
	if dBm, ok = values.Get(mihf.ParamRSSI); ok {
		return dBm, true
	}
	return values.Get(mihf.ParamRSRP)
}

// lossUntil is the end of a true loss, from the recording's start; without one it lasts to
// the next reading.
func lossUntil(o *mihf.Observation) (time.Duration, bool) {
	if o.Kind != mihf.ObsTruth || o.Truth.Kind != "loss" {
		return 0, false
	}
	if o.Truth.Until.IsZero() {
		return 0, true
	}
	return o.Truth.Until.Sub(recording.Base), true
}
