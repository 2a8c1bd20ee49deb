package mihf

import "fmt"

// InformationRequest says what is asked of the Information Service (802.21
// MIH_Get_Information). A point of attachment must pass all filters; an empty one passes
// everything.
type InformationRequest struct {
	Links []LinkID // heard by one of these
	SSIDs [][]byte // of one of these networks, octet for octet; an empty item: a network that hides its name
	PoAs  []PoA
}

// Information is what is known of the points of attachment that were asked for.
type Information struct {
	At   Time
	PoAs []PoAInformation // the one that was heard last comes first
	// Forgotten is how many, of all, had to make room for others in this run of the broker.
	Forgotten uint64
}

// PoAInformation is what one link has learned of one point of attachment.
type PoAInformation struct {
	PoA      PoA
	Link     LinkID
	SSID     []byte    // nil: not known; empty: the network hides its name
	Readings []Reading // the newest of each parameter, in the order of the parameters
	// FirstHeard and LastHeard are by scans, readings and attachments alike.
	FirstHeard, LastHeard Time
	Attached              bool   // the link is attached to it now
	Attachments           uint64 // how many times it was, in this run of the broker
	LCI                   *LCI   // of the newest attachment; nil: nothing known
}

// Reading is one value with the moment when it was true.
type Reading struct {
	Parameter Parameter
	Value     float64
	At        Time
}

// Bounds of ids and names of points of attachment, and of an [InformationRequest].
const (
	MaxPoABytes          = 64
	MaxSSIDBytes         = 32
	MaxInformationFilter = 64 // items of each filter
)

// Check says what is wrong with the request; the error wraps [ErrInvalid]. Nil: nothing.
func (q *InformationRequest) Check() error {
	if n := max(len(q.Links), len(q.SSIDs), len(q.PoAs)); n > MaxInformationFilter {
		return fmt.Errorf("%w: %d links, networks or points of attachment are asked for, at most %d of each", ErrInvalid, n, MaxInformationFilter)
	}
	for _, l := range q.Links {
		if !l.Valid() {
			return fmt.Errorf("%w: %.40q is not a link id: want <type>-<8 hexadecimal digits>", ErrInvalid, string(l))
		}
	}
	for _, s := range q.SSIDs {
		if len(s) > MaxSSIDBytes {
			return fmt.Errorf("%w: an SSID of %d octets, at most %d", ErrInvalid, len(s), MaxSSIDBytes)
		}
	}
	for _, p := range q.PoAs {
		if p == "" || len(p) > MaxPoABytes {
			return fmt.Errorf("%w: a point of attachment of %d octets, want 1 to %d", ErrInvalid, len(p), MaxPoABytes)
		}
	}
	return nil
}
