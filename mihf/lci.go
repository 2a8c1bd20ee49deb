package mihf

// Source says where a link characteristic comes from. It decides what a transport
// may do with it.
type Source uint8

// Sources, best first.
const (
	SourceUnknown  Source = iota
	SourceMeasured        // on this path, now
	SourceOperator        // given by the operator
	SourceHistory         // measured here before
	SourceModem           // the modem's class or bearer
	SourcePHY             // from the PHY rate or the link's facts
)

var sourceNames = [...]string{"unknown", "measured", "operator", "history", "modem", "phy"}

func (s Source) String() string { return nameOf(sourceNames[:], int(s)) }

// ParseSource is the inverse of [Source.String].
func ParseSource(s string) (Source, bool) {
	i, ok := indexOf(sourceNames[:], s)
	return Source(i), ok
}

// MayRaise reports whether a value of this source may raise a window or rate. History
// raises by the rules of RFC 9959 only; modem and PHY classes only lower.
func (s Source) MayRaise() bool {
	return s == SourceMeasured || s == SourceOperator || s == SourceHistory
}

// Characteristic is one value of an [LCI] with its provenance. The zero
// Characteristic is unknown.
type Characteristic struct {
	Value      float64
	Source     Source
	At         Time    // when it was true; its age is counted from here
	Confidence float64 // 0 to 1
}

// Known reports whether there is a value.
func (c Characteristic) Known() bool { return c.Source != SourceUnknown }

// LCI are the characteristics of a link at a point of attachment. What is not known is
// absent. A PHY rate is never a capacity.
type LCI struct {
	Link            LinkID
	PoA             PoA
	CapacityDownBPS Characteristic // bit/s towards us
	CapacityUpBPS   Characteristic // bit/s from us
	RTTSeconds      Characteristic
	JitterSeconds   Characteristic
	LossRatio       Characteristic // 0 to 1
	MTUBytes        Characteristic
	BufferBytes     Characteristic // at the bottleneck
}
