package broadcast

import "mihf.dev/mihf"

// chain checks that the messages heard on each link and of each flow follow one another.
// It knows everything up to reached.
type chain struct {
	boot    mihf.BootID
	reached uint64
	links   map[mihf.LinkID]uint64
	flows   map[mihf.FlowID]uint64
}

func newChain(boot mihf.BootID, reached uint64) chain {
	return chain{boot: boot, reached: reached, links: map[mihf.LinkID]uint64{}, flows: map[mihf.FlowID]uint64{}}
}

// verdict is what becomes of a message.
type verdict uint8

const (
	fresh verdict = iota // the next of its chain
	known                // heard already, or part of what was caught up with
	lost                 // something before it is missing, or it is of another run
)

// maxChains bounds the links and the flows that are told apart. The front's own bound is
// lower, and where it forgets, all begins anew.
const maxChains = 65536

func (c *chain) judge(l *Live) verdict {
	switch {
	case l.boot() != c.boot:
		return lost
	case l.Kind == mihf.DeliverHint:
		return follow(c.flows, l.Hint.Flow, l.Hint.Sequence, l.Chain, c.reached)
	default:
		return follow(c.links, l.Event.Link, l.Event.Sequence, l.Chain, c.reached)
	}
}

func follow[K comparable](chain map[K]uint64, key K, sequence, previous, reached uint64) verdict {
	last := max(chain[key], reached)
	switch {
	case sequence <= last:
		return known
	case previous > last, len(chain) >= maxChains:
		return lost
	}
	chain[key] = sequence
	return fresh
}
