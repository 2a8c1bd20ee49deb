package tcpadjust

import (
	"fmt"
	"math"
	"time"

	"mihf.dev/mihf"
)

// Role is which end of the connection is adjusted.
type Role uint8

// Roles.
const (
	Sender   Role = iota // its window is set
	Receiver             // the window that it advertises is set
)

// State is a connection as it is now.
type State struct {
	Role         Role
	SegmentBytes int           // without headers
	HeaderBytes  int           // IP and TCP, a tunnel's too; 0: 40
	CwndSegments int           // as a sender; 0 as a receiver
	Ssthresh     int           // segments
	MinRTT       time.Duration // on this path; 0: none yet
	SRTT         time.Duration // on this path; 0: none yet
	DeliveryBPS  float64       // on this path, of payload; 0: none yet
	AppLimited   bool          // DeliveryBPS is what the application gave, not what the path carries
}

// Path is what is told of the new path, and how the connection shares it.
type Path struct {
	LCI     mihf.LCI
	Sharers int           // connections that the path is divided among, this one too; below 1: 1
	RTT     time.Duration // where the LCI has none: of the exchange that made the path; 0: unknown
}

// Direction is which way a plan moves the window.
type Direction uint8

// Directions.
const (
	Nothing Direction = iota // see Plan.Why
	Lower
	Raise
	Keep // the window fits; its bound is set
)

var directionNames = [...]string{"nothing", "lower", "raise", "keep"}

func (d Direction) String() string { return directionNames[d] }

// Plan is what to do with the connection.
type Plan struct {
	Direction    Direction
	Why          string // where nothing is done, in words
	CwndSegments int    // to be set at once
	Ssthresh     int    // segments
	ClampSegment int    // that the window may grow to; 0: no bound
	PacingBPS    float64
	// PacedFor is how long the pacing lasts from when the plan is carried out; then it is
	// taken off. 0: there is none.
	PacedFor time.Duration
	// AdvertiseBytes is the window to advertise, for a Receiver; 0: no bound.
	AdvertiseBytes int
}

// Bounds of what is believed.
const (
	MaxAge        = 30 * time.Second // of a measured value; history and operator have none
	MinConfidence = 0.5
	minBPS        = 1e3
	maxBPS        = 1e12
	maxRTT        = 10 * time.Second
	paced         = 0.9 // of the path's rate, for a raise: measured to make no drops
	same          = 0.2 // a window so near to the right one is kept
	headerBytes   = 40
	least         = 2 // segments
	headroom      = 2 // of the bound over the bandwidth-delay product
)

// Window returns how many segments fill a path: RFC 4782's (3), at least two.
func Window(bps float64, rtt time.Duration, segmentBytes, headerBytes int) int {
	bytes := bps * rtt.Seconds() / 8
	return max(least, int(math.Ceil(bytes/float64(segmentBytes+headerBytes)-1e-9)))
}

// target is the window for the new path, and the right to go there.
type target struct {
	segments int
	bps      float64 // of this connection's part
	rtt      time.Duration
	source   mihf.Source // the worse one of rate and round-trip time
}

// judge reads the characteristics; the words say why they are not believed.
func judge(now mihf.Time, s *State, p *Path) (target, string) {
	capacity := p.LCI.CapacityUpBPS
	if s.Role == Receiver {
		capacity = p.LCI.CapacityDownBPS
	}
	rtt, why := roundTrip(now, s, p)
	if why == "" {
		why = believable(now, "capacity", capacity, minBPS, maxBPS)
	}
	if why != "" {
		return target{}, why
	}
	bps := capacity.Value / float64(max(1, p.Sharers))
	if bps < minBPS {
		return target{}, fmt.Sprintf("a part of %.0f bit/s is nothing to plan with", bps)
	}
	if s.SegmentBytes <= 0 {
		return target{}, "the connection has no segment size yet"
	}
	header := s.HeaderBytes
	if header <= 0 {
		header = headerBytes
	}
	if !s.AppLimited && s.DeliveryBPS > 2*capacity.Value {
		return target{}, fmt.Sprintf("the connection carries %.3g bit/s, twice the capacity that is told", s.DeliveryBPS)
	}
	return target{Window(bps, rtt.length, s.SegmentBytes, header), bps, rtt.length, max(capacity.Source, rtt.source)}, ""
}

type trip struct {
	length time.Duration
	source mihf.Source
}

// roundTrip takes what the connection has measured on this path first: it can't be less
// than that, whatever is told.
func roundTrip(now mihf.Time, s *State, p *Path) (trip, string) {
	told := trip{time.Duration(p.LCI.RTTSeconds.Value * float64(time.Second)), p.LCI.RTTSeconds.Source}
	switch {
	case s.MinRTT > 0:
		told = trip{s.MinRTT, mihf.SourceMeasured}
	case !p.LCI.RTTSeconds.Known() && p.RTT > 0:
		told = trip{p.RTT, mihf.SourceMeasured}
	default:
		if why := believable(now, "round-trip time", p.LCI.RTTSeconds, 0, maxRTT.Seconds()); why != "" {
			return trip{}, why
		}
	}
	if told.length <= 0 || told.length > maxRTT {
		return trip{}, fmt.Sprintf("a round-trip time of %v is not plausible", told.length)
	}
	return told, ""
}

func believable(now mihf.Time, what string, c mihf.Characteristic, least, most float64) string {
	switch {
	case !c.Known():
		return what + " is not known"
	case !(c.Value > least && c.Value <= most): // NaN too
		return fmt.Sprintf("a %s of %v is not plausible", what, c.Value)
	case c.Confidence < MinConfidence || c.Confidence != c.Confidence:
		return fmt.Sprintf("%s has a confidence of %v, below %v", what, c.Confidence, MinConfidence)
	case c.Source != mihf.SourceHistory && c.Source != mihf.SourceOperator && now.Sub(c.At) > MaxAge:
		return fmt.Sprintf("%s is %v old", what, now.Sub(c.At).Round(time.Second))
	}
	return ""
}
