package mihf

import (
	"errors"
	"time"
)

// Errors that a front turns into its own refusals. The text that wraps them says what
// and why.
var (
	ErrPermission = errors.New("not permitted")
	ErrNotFound   = errors.New("not found")
	ErrInvalid    = errors.New("invalid request")
	ErrLimit      = errors.New("limit reached")
	ErrExists     = errors.New("already in use")
	// ErrSlow ends a subscription that did not take its deliveries in time. The
	// subscriber comes back and is given a snapshot.
	ErrSlow = errors.New("subscriber too slow")
	// ErrClosed ends a subscription whose broker has stopped, or that was closed.
	ErrClosed = errors.New("closed")
)

// SubscribeRequest says what a subscriber wants to see.
type SubscribeRequest struct {
	// After resumes behind this sequence of run Boot (0: the present one). Where that run
	// has ended, or the replay ring does not reach back, the gap is stated and a snapshot
	// comes first; with neither After nor Boot a snapshot alone.
	After uint64
	Boot  BootID
	Links []LinkID // empty: all
	Kinds KindSet  // empty: all
	Hints bool     // also the hints of the flows that the caller may see
	// HintsOnly asks for those hints and for no events; Kinds must be empty then.
	HintsOnly bool
	// Present ends the subscription with io.EOF behind what was published before it began:
	// after the snapshot, or after what followed After.
	Present bool
}

// WantsHints reports whether the request asks for hints.
func (q *SubscribeRequest) WantsHints() bool { return q.Hints || q.HintsOnly }

// WantsKind reports whether the request asks for events of the kind.
func (q *SubscribeRequest) WantsKind(k Kind) bool {
	return !q.HintsOnly && (q.Kinds == 0 || q.Kinds.Has(k))
}

// DeliveryKind says what a [Delivery] carries.
type DeliveryKind uint8

// Kinds of delivery.
const (
	DeliverEvent DeliveryKind = iota + 1
	DeliverHint
	DeliverSnapshot
	DeliverGap
)

// Delivery is one item of a subscription. Sequence numbers rise strictly; Previous is
// that of the delivery before it on the same subscription, so a reader that sees
// another one knows that it missed something and takes a snapshot.
type Delivery struct {
	Previous  uint64
	Conflated uint32 // how many older ones of this series it replaces (NewestOnly)
	Kind      DeliveryKind
	Event     Event
	Hint      Hint
	Gap       Gap
	Snapshot  *Snapshot
}

// Gap states that deliveries after From up to To are missing.
type Gap struct {
	From, To uint64
	Reason   string
}

// Sequence returns the number that a reader has reached with this delivery.
func (d *Delivery) Sequence() uint64 {
	switch d.Kind {
	case DeliverEvent:
		return d.Event.Sequence
	case DeliverHint:
		return d.Hint.Sequence
	case DeliverSnapshot:
		return d.Snapshot.Sequence
	case DeliverGap:
		return d.Gap.To
	}
	return 0
}

// Feed is the reading end of a subscription. It is used by one goroutine; Close may be
// called by any, more than once.
type Feed interface {
	// Next waits until something is there and fills buf; it returns how many. It ends
	// with ErrSlow, ErrClosed or the error of the context given at subscription; io.EOF
	// where a request with Present has all that it asked for.
	Next(buf []Delivery) (int, error)
	// Done is closed when the feed has ended, also while its reader is busy elsewhere
	// (a front whose Send is blocked by a peer that stopped reading).
	Done() <-chan struct{}
	// Err says why the feed ended; nil while it has not.
	Err() error
	Close()
}

// Attachment is the connection of one transport process with its flows: hints come
// through the Feed. Closing it ends the registration of its flows.
type Attachment interface {
	Feed
	Register(FlowSpec) (Registration, error)
	Update(FlowUpdate) error
	Unregister(FlowID) error
	Acknowledge(Ack) error
}

// Snapshot is the whole state at one sequence: what follows has higher numbers.
type Snapshot struct {
	Sequence uint64
	Boot     BootID
	Node     NodeID
	At       Time
	Links    []LinkStatus
	Flows    []FlowStatus // those that the caller may see
	Sensors  []SensorCondition
	Egress   []Egress
	// Kinds are the events that what the sensors have given so far can lead to. A
	// subscription to another kind is granted, but nothing will come until a sensor that
	// gives it is there.
	Kinds KindSet
}

// LinkStatus is the state of one link.
type LinkStatus struct {
	Link        LinkID
	Facts       *LinkFacts // nil: no sensor gave them
	Up          bool
	Since       Time // of Up or down
	PoA         PoA
	SSID        []byte
	Association AssociationState
	Technology  string // of the attachment (see [Association]); "": not known
	UsableIPv4  bool
	UsableIPv6  bool
	Values      Values
	ValuesAt    Time
	Prediction  Opt[Prediction] // the open one
	Forecast    *Forecast       // the newest; nil: none
	LCI         *LCI
	HoldDown    bool // came back lately; not yet recommended
}

// FlowStatus is the state of one flow.
type FlowStatus struct {
	Spec         FlowSpec
	Link         LinkID
	RTT          time.Duration // in force
	RTTSource    RTTSource
	Lead         time.Duration
	Frozen       bool
	FrozenSince  Time
	Epoch        uint64
	Acknowledged uint64 // newest epoch
	LastAck      AckResult
	Needless     time.Duration // frozen by predictions that did not come true, in the budget's window
	BackoffUntil Time
}

// Explanation is why a prediction was announced and how it ended.
type Explanation struct {
	Prediction Prediction // newest revision, with its outcome
	Announced  Prediction // revision 0, as it was announced
	Link       LinkID
	Samples    []Sample // before and after, oldest first
	Forecasts  []ForecastPoint
	Decisions  []Decision // the flow rules that fired, and the announcement itself
	OutcomeAt  Time
}

// Sample is one reading that the predictor was given.
type Sample struct {
	At     Time
	Values Values
	PoA    PoA
}

// ForecastPoint is a forecast in short.
type ForecastPoint struct {
	At            Time
	Within        time.Duration // the horizon
	PLoss         float64
	PHandover     float64
	P10, P50, P90 Opt[time.Duration]
}

// Decision is one evaluation of a rule that led to something.
type Decision struct {
	At   Time
	Flow FlowID // "" : the announcement rule
	Rule string // in words and numbers
}

// CounterValue is one named count of a [Status].
type CounterValue struct {
	Name  string // as in the metrics, "mihf_<part>_<what>_<unit>_total"
	Value uint64
}

// Status is what an administrator asks for.
type Status struct {
	Version     string
	Node        NodeID
	Boot        BootID
	Uptime      time.Duration
	Sequence    uint64
	Subscribers int
	Flows       int
	Links       int
	Predictor   string
	Sensors     []SensorCondition
	Fronts      []SensorCondition // those that need something outside: a bus, a server
	Counters    []CounterValue
}
