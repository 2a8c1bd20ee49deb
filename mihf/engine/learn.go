package engine

import (
	"mihf.dev/mihf"
	"mihf.dev/mihf/info"
	"mihf.dev/mihf/linkstate"
)

// learn keeps what an observation of a link says of points of attachment.
func (e *Engine) learn(now mihf.Time, l *link, o *mihf.Observation) {
	m := l.machine
	at := linkstate.Taken(now, o)
	switch {
	case o.Kind == mihf.ObsDetected && o.Detected != nil:
		e.info.Hear(l.id, o.Detected.PoA, o.Detected.SSID, &o.Detected.Values, at)
	case o.Kind == mihf.ObsRadio && o.PoA != "":
		e.info.Hear(l.id, o.PoA, nil, &o.Values, at)
	case o.Kind == mihf.ObsRadio && m.Attached():
		e.info.Hear(l.id, m.PoA(), nil, &o.Values, at)
	}
	e.heard(now, l, o)
	if !m.Attached() {
		e.info.Attach(now, l.id, "", nil, nil)
		return
	}
	e.info.Attach(now, l.id, m.PoA(), m.SSID(), m.LCI())
}

// Information returns what is known of points of attachment, in no order that means
// anything. The request is one that its Check passed.
func (e *Engine) Information(now mihf.Time, req *mihf.InformationRequest) *mihf.Information {
	return e.info.Query(now, req)
}

// Learned returns how many points of attachment are kept, and what was not.
func (e *Engine) Learned() (kept int, lost info.Counts) { return e.info.Len(), e.info.Counts() }
