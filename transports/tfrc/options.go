package tfrc

// Options is the Freeze state that a packet carries to the machine at the other end.
type Options uint8

// Options of data packets and reports.
const (
	OptRestoring Options = 1 << iota // sender: it goes on at the rate before the freeze
	OptProbing                       // sender: it probes for more
	OptUnfrozen                      // receiver: a whole round-trip has passed since the restart
)

// Has reports whether all of o are set.
func (s Options) Has(o Options) bool { return s&o == o }
