package demo

import (
	"cmp"
	"math"
	"slices"
	"time"

	"mihf.dev/cmd/mihctl/internal/tally"
	"mihf.dev/mihf"
)

// Report is what came of the walk. Times are trace times.
type Report struct {
	Recording      string     `json:"recording"`
	Speed          float64    `json:"speed"`
	LossS          float64    `json:"loss_s"` // the last frame, as the recording tells
	Flow           Flow       `json:"flow"`
	Prediction     Prediction `json:"prediction"`
	Freeze         Freeze     `json:"freeze"`
	Outcome        string     `json:"outcome"` // of the prediction that was open at the loss; "missed": there was none
	FrozenMs       *float64   `json:"frozen_ms"`
	Rollbacks      int        `json:"rollbacks"`
	FalseAlarms    int        `json:"false_alarms"`
	NeedlessFreeze int        `json:"needless_freezes"`
	Timeline       []Entry    `json:"timeline"`

	NoDBus error    `json:"-"` // why D-Bus was left out; nil: it was not
	fronts []string // those with a client; the first one's flow is what is counted
}

// Flow is the flow that the client registered.
type Flow struct {
	RTTMs     float64 `json:"rtt_ms"`
	Direction string  `json:"direction"`
	LeadMs    float64 `json:"lead_ms"` // what it needs before a loss
}

// Prediction is the one that was open at the loss.
type Prediction struct {
	ID         string   `json:"id,omitempty"`
	AnnouncedS *float64 `json:"announced_s"`
	LeadMs     *float64 `json:"lead_ms"` // from the announcement to the loss; null: none was open
}

// Freeze is how long before the loss the client of each front had its Freeze; negative:
// after it; null: never, or there is no such front.
type Freeze struct {
	GRPC *float64 `json:"grpc_before_loss_ms"`
	NATS *float64 `json:"nats_before_loss_ms"`
	DBus *float64 `json:"dbus_before_loss_ms"`
}

// of returns a front's place.
func (f *Freeze) of(front string) **float64 {
	return map[string]**float64{"grpc": &f.GRPC, "nats": &f.NATS, "dbus": &f.DBus}[front]
}

// Entry is one line of the timeline.
type Entry struct {
	TimeS float64 `json:"t_s"`
	From  string  `json:"from"` // "event", "truth", or the front whose client it was
	Kind  string  `json:"kind"`
	Text  string  `json:"text"`

	at    mihf.Time // for the order
	event *mihf.Event
	hint  *mihf.Hint
	truth *mihf.Observation
}

func byTime(a, b Entry) int { return cmp.Compare(a.at, b.at) }

// Revision reports whether the entry only brings a prediction up to date.
func (e *Entry) Revision() bool {
	return e.event != nil && e.event.Kind == mihf.LinkGoingDown && e.event.Prediction.Revision > 0
}

// OK reports whether each front's client was frozen before the loss.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.fronts, func(front string) bool {
		before := *r.Freeze.of(front)
		return before == nil || *before <= 0
	})
}

// fill counts what the timeline holds. start is the recording's.
func (r *Report) fill(start mihf.Time) {
	slices.SortStableFunc(r.Timeline, byTime)
	var t tally.Tally
	for i := range r.Timeline {
		e := &r.Timeline[i]
		switch {
		case e.event != nil:
			t.Event(e.event)
		case e.hint != nil && e.From == r.fronts[0]:
			t.Hint(e.at, e.hint)
		case e.truth != nil:
			t.Truth(e.truth)
		}
	}
	r.Rollbacks, r.FalseAlarms, r.NeedlessFreeze = t.Rollbacks, t.FalseAlarms, t.Needless
	r.Outcome = "missed"
	if len(t.Losses) == 0 {
		return
	}
	l := &t.Losses[0]
	r.LossS = seconds(l.At.Sub(start))
	if p, ok := l.Prediction.Get(); ok {
		r.Outcome = l.Outcome.String()
		r.Prediction = Prediction{ID: p.ID.String(), AnnouncedS: new(seconds(p.OpenedAt.Sub(start))), LeadMs: new(millis(l.At.Sub(p.OpenedAt)))}
	}
	for i, front := range r.fronts {
		before, frozen := r.frozen(front, l.At)
		if *r.Freeze.of(front) = before; i == 0 {
			r.FrozenMs = frozen
		}
	}
}

// frozen returns how long before the loss a front's client was frozen for it, and how long
// it stayed so.
func (r *Report) frozen(front string, loss mihf.Time) (before, lasted *float64) {
	var frozen mihf.Time
	for i := range r.Timeline {
		e := &r.Timeline[i]
		if e.hint == nil || e.From != front {
			continue
		}
		switch e.hint.Kind {
		case mihf.HintFreeze:
			frozen = e.at
		case mihf.HintUnfreeze:
			if e.at > loss && frozen != 0 {
				return new(millis(loss.Sub(frozen))), new(millis(e.at.Sub(frozen)))
			}
			frozen = 0
		default:
		}
	}
	if frozen == 0 {
		return nil, nil
	}
	return new(millis(loss.Sub(frozen))), nil
}

// millis and seconds keep microseconds.
func millis(d time.Duration) float64  { return math.Round(d.Seconds()*1e6) / 1e3 }
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e6) / 1e6 }
