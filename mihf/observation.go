package mihf

import "time"

// ObservationKind says what an [Observation] carries.
type ObservationKind uint8

// Kinds of observation.
const (
	ObsLink        ObservationKind = iota + 1 // Facts: the link as the kernel has it
	ObsLinkGone                               // Gone: the link does not exist any more
	ObsRadio                                  // Values, PoA: one reading of the radio or path
	ObsAssociation                            // Association
	ObsDetected                               // Detected
	ObsScan                                   // Scanning: a scan began or ended
	ObsHandover                               // PoA: the network ordered a handover to it
	ObsEgress                                 // Egress: the kernel's default choice
	ObsPeer                                   // Peer: the route to a watched peer
	ObsFlow                                   // Flow: how a live flow fares
	ObsCondition                              // Condition of the sensor itself
	ObsResync                                 // Lost: the sensor read everything again
	ObsResume                                 // Gap: the machine was suspended that long
	ObsTruth                                  // Truth: recordings only, never from a sensor
)

var observationNames = [...]string{
	"none", "link", "link_gone", "radio", "association", "detected", "scan", "handover", "egress", "peer", "flow",
	"condition", "resync", "resume", "truth",
}

func (k ObservationKind) String() string { return nameOf(observationNames[:], int(k)) }

// ParseObservationKind is the inverse of [ObservationKind.String].
func ParseObservationKind(s string) (ObservationKind, bool) {
	i, ok := indexOf(observationNames[:], s)
	return ObservationKind(i), ok && i > 0
}

// Observation is what a sensor saw: which link, when, how old, and only the values
// that the source really gave. Kind says which of the fields below it is set.
type Observation struct {
	At     Time          // when the sensor had it
	Age    time.Duration // how old it was then; 0 for what was just measured
	Sensor string        // the sensor's name: "rtnl", "nl80211", "replay"
	Link   LinkID        // "" for ObsEgress, ObsPeer, ObsCondition, ObsResync, ObsResume, and for ObsFlow where it is not known
	Kind   ObservationKind

	Values   Values
	PoA      PoA
	Scanning bool
	Lost     bool // messages were lost before this resync
	Gap      time.Duration
	Gone     DownReason

	Facts       *LinkFacts
	Association *Association
	Detected    *Detected
	Egress      *Egress
	Peer        *PeerRoute
	Flow        *FlowReading
	Condition   *SensorCondition
	Truth       *Truth
}

// Condition is a sensor's state.
type Condition uint8

// Conditions of a sensor. None of them ends the daemon.
const (
	ConditionStarting    Condition = iota
	ConditionOK                    // it works
	ConditionDegraded              // it works, but something that it should have is missing
	ConditionUnavailable           // the hardware, kernel family or service is not there
	ConditionDenied                // a permission is missing
	ConditionStopped
)

var conditionNames = [...]string{"starting", "ok", "degraded", "unavailable", "denied", "stopped"}

func (c Condition) String() string { return nameOf(conditionNames[:], int(c)) }

// ParseCondition is the inverse of [Condition.String].
func ParseCondition(s string) (Condition, bool) {
	i, ok := indexOf(conditionNames[:], s)
	return Condition(i), ok
}

// SensorCondition is a change of a sensor's state, with what the user can do.
type SensorCondition struct {
	Sensor    string
	Condition Condition
	Text      string // for people: what is missing and what would help
}

// Truth is a known outcome in a recording, for scoring. It is never given to a predictor.
type Truth struct {
	Kind  string // "loss", "handover", "blind", or the source's own word
	Until Time   // when service was back; zero if not known
}
