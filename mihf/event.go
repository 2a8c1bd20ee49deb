package mihf

import (
	"net/netip"
	"time"
)

// Kind is a kind of event.
type Kind uint8

// Kinds of event. The first ten follow 802.21 and its drafts; the others are ours.
const (
	LinkDetected Kind = iota + 1
	LinkUp
	LinkDown
	LinkParametersReport
	LinkGoingDown
	LinkEventRollback
	PredictionExpired
	LinkHandoverImminent
	LinkHandoverComplete
	PathUsable
	PathLost
	DefaultRouteChanged
	AddressChanged
	LinkRenamed
	LinkRemoved
	SensorConditionChanged
	ResumedFromSuspend
	Resync
	ShareReport
	numKinds
)

// NumKinds is one more than the highest kind.
const NumKinds = int(numKinds)

var kindNames = [...]string{
	"none", "link_detected", "link_up", "link_down", "link_parameters_report", "link_going_down", "link_event_rollback",
	"prediction_expired", "link_handover_imminent", "link_handover_complete", "path_usable", "path_lost",
	"default_route_changed", "address_changed", "link_renamed", "link_removed", "sensor_condition",
	"resumed_from_suspend", "resync", "share_report",
}

func (k Kind) String() string { return nameOf(kindNames[:], int(k)) }

// ParseKind is the inverse of [Kind.String].
func ParseKind(s string) (Kind, bool) {
	i, ok := indexOf(kindNames[:], s)
	return Kind(i), ok && i > 0
}

// KindSet is a set of event kinds. The empty set means all where it filters.
type KindSet uint32

// Kinds returns the set of the kinds given.
func Kinds(ks ...Kind) KindSet {
	var s KindSet
	for _, k := range ks {
		s |= 1 << k
	}
	return s
}

// Has reports whether the set holds k.
func (s KindSet) Has(k Kind) bool { return s&(1<<k) != 0 }

// Admission is what may happen to an event on its way to a slow subscriber.
type Admission uint8

// Admissions.
const (
	// NeverDrop: delivered, or the subscriber is closed as slow.
	NeverDrop Admission = iota
	// NewestOnly: a newer one of the same link and parameter (sensor, flow) replaces it,
	// and the delivery counts how many were replaced.
	NewestOnly
	// DropOldest: the oldest of the kind may go, and the loss is shown as a gap.
	DropOldest
)

// Admission returns the delivery rule of the kind.
func (k Kind) Admission() Admission {
	switch k {
	case LinkParametersReport, SensorConditionChanged, ShareReport:
		return NewestOnly
	case LinkDetected:
		return DropOldest
	default:
		return NeverDrop
	}
}

// Event is one event of the Media Independent Event Service. Kind says which of the
// fields after it is set; the pointed-to values are never changed.
type Event struct {
	Sequence uint64
	Boot     BootID
	Link     LinkID // "" where the event is not about one link
	At       Time   // when it was true; its age is counted from here
	Kind     Kind

	Report     Report     // LinkParametersReport
	Prediction Prediction // LinkGoingDown, LinkEventRollback, PredictionExpired; else the one it ends
	Down       Down       // LinkDown

	Detected    *Detected           // LinkDetected
	Up          *Up                 // LinkUp
	Handover    *Handover           // LinkHandoverImminent, LinkHandoverComplete
	Path        *Path               // PathUsable, PathLost
	Egress      *EgressChange       // DefaultRouteChanged
	Address     *AddressChange      // AddressChanged
	Rename      *Rename             // LinkRenamed
	Removed     DownReason          // LinkRemoved
	Condition   *SensorCondition    // SensorConditionChanged
	Gap         time.Duration       // ResumedFromSuspend: how long
	Resync      *ResyncInfo         // Resync
	ShareReport *ShareReportPayload // ShareReport
}

// Up is the payload of LinkUp.
type Up struct {
	PoA   PoA
	SSID  []byte
	Facts *LinkFacts // nil: no sensor gave them
	LCI   *LCI
}

// Down is the payload of LinkDown.
type Down struct {
	Reason DownReason
	Code   uint32 // of the technology
	PoA    PoA
	// Withheld is how long the event was kept back because a roam was likely.
	Withheld time.Duration
}

// Report is the payload of LinkParametersReport: one value, and the threshold that it
// crossed, if any.
type Report struct {
	Parameter Parameter
	Value     float64
	Previous  Opt[float64]
	Threshold Opt[Threshold]
	Periodic  bool // a periodic report that was asked for
}

// Handover is the payload of LinkHandoverImminent and LinkHandoverComplete. Within one
// link only the PoA changes.
type Handover struct {
	OldLink, NewLink LinkID
	OldPoA, NewPoA   PoA
	NetworkOrdered   bool
	// DataGap is how long the path was not usable; unknown while it lasts.
	DataGap Opt[time.Duration]
}

// Path is the payload of PathUsable and PathLost: whether a flow could go on over the
// link in one address family. Usable is more than up: the station is authorised, a
// source address is there and not tentative, and a route leads out.
type Path struct {
	IPv6    bool
	Source  netip.Addr
	Gateway netip.Addr
	Reason  DownReason // PathLost
	LCI     *LCI       // PathUsable; nil: nothing known
}

// EgressChange is the payload of DefaultRouteChanged.
type EgressChange struct{ Old, New Egress }

// AddressChange is the payload of AddressChanged. Old or New is not valid where the
// address was added or removed; lifetimes alone are no change.
type AddressChange struct {
	Old, New Address
	Minor    bool // no flow cares that does not use just this address: link-local, privacy or deprecated
}

// Rename is the payload of LinkRenamed. Names are arbitrary octets.
type Rename struct{ Old, New string }

// ResyncInfo is the payload of Resync: a sensor read all its state again.
type ResyncInfo struct {
	Sensor string
	Lost   bool // messages were lost before
	Reason string
}

// ShareReportPayload is the payload of ShareReport: a flow's share of a shared medium.
type ShareReportPayload struct {
	Flow     FlowID
	LimitBPS float64
}

// ThresholdDirection says which crossing is reported.
type ThresholdDirection uint8

// Directions (802.21 THRESHOLD).
const (
	ThresholdAbove ThresholdDirection = iota
	ThresholdBelow
)

var thresholdNames = [...]string{"above", "below"}

func (d ThresholdDirection) String() string { return nameOf(thresholdNames[:], int(d)) }

// ParseThresholdDirection is the inverse of [ThresholdDirection.String].
func ParseThresholdDirection(s string) (ThresholdDirection, bool) {
	i, ok := indexOf(thresholdNames[:], s)
	return ThresholdDirection(i), ok
}

// Threshold is a level of a parameter and the direction of the crossing to report.
type Threshold struct {
	Value     float64 // in the parameter's unit
	Direction ThresholdDirection
}

// ThresholdAction says what to do with a threshold (802.21 TH_ACTION).
type ThresholdAction uint8

// Actions.
const (
	ThresholdNormal ThresholdAction = iota
	ThresholdOneShot
	ThresholdCancel
)

var thresholdActionNames = [...]string{"normal", "one_shot", "cancel"}

func (a ThresholdAction) String() string { return nameOf(thresholdActionNames[:], int(a)) }

// ParseThresholdAction is the inverse of [ThresholdAction.String].
func ParseThresholdAction(s string) (ThresholdAction, bool) {
	i, ok := indexOf(thresholdActionNames[:], s)
	return ThresholdAction(i), ok
}

// ThresholdConfig is one item of Link_Configure_Thresholds (802.21 LINK_CFG_PARAM): a
// threshold, a period, or both.
type ThresholdConfig struct {
	Parameter  Parameter
	Action     ThresholdAction
	Threshold  Opt[Threshold]
	Hysteresis float64       // in the parameter's unit; 0: the parameter's default
	Period     time.Duration // at least [MinReportPeriod]; 0: no periodic report
}

// MinReportPeriod is the shortest period of a periodic report.
const MinReportPeriod = 20 * time.Millisecond
