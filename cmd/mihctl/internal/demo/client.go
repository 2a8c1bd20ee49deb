package demo

import (
	"fmt"
	"time"

	"mihf.dev/cmd/internal/show"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// rtt is that of the flow.
const rtt = 100 * time.Millisecond

// transport is a client's flow as package attach sees it. It does nothing but tell when it
// was told what.
type transport struct {
	front string
	clock clock.Clock
	note  chan<- Entry // has room for all that can come; see Run
}

// RTT returns the flow's round-trip time.
func (t *transport) RTT() time.Duration { return rtt }

// Freeze notes a Freeze.
func (t *transport) Freeze(f mihf.Freeze) {
	t.told(&mihf.Hint{Kind: mihf.HintFreeze, Freeze: f}, "Freeze")
}

// Unfreeze notes an Unfreeze.
func (t *transport) Unfreeze(u mihf.Unfreeze) {
	t.told(&mihf.Hint{Kind: mihf.HintUnfreeze, Unfreeze: u}, "Unfreeze")
}

// Characteristics is not shown.
func (t *transport) Characteristics(mihf.LCI) {}

func (t *transport) told(h *mihf.Hint, what string) {
	now := t.clock.Now()
	h.Link, h.Flow = link, mihf.FlowID(t.front)
	select {
	case t.note <- Entry{From: t.front, Kind: h.Kind.String(), Text: what + " reached the " + t.front + " client: " + text(h), at: now, hint: h}:
	default: // more than can be: the recording has a handful
	}
}

func text(h *mihf.Hint) string {
	if h.Kind == mihf.HintUnfreeze {
		s := h.Unfreeze.Cause.String()
		if h.Unfreeze.Recovery {
			s += ", to recovery"
		}
		return s
	}
	return fmt.Sprintf("the loss is expected in %s (p10 %s, p90 %s)", show.Span(h.Freeze.P50), show.Span(h.Freeze.P10), show.Span(h.Freeze.P90))
}
