package broadcast

import "mihf.dev/mihf"

// Chains links each event to the newest one before it on its link that may not be dropped
// (mihf.NeverDrop), and each hint to the one before it of its flow, so that whoever hears some
// links or flows only can tell that something was lost. The zero value knows nothing. Not for
// concurrent use.
type Chains struct {
	links map[mihf.LinkID]uint64 // "": events of no link
	flows map[mihf.FlowID]uint64
	floor uint64 // the previous one of a chain that is not known
}

// maxChains bounds the links and the flows that are known.
const maxChains = 16384

// Next returns the sequence of the message before d on its chain, and takes d as the
// newest. What is neither an event nor a hint is on no chain, and breaks all.
func (c *Chains) Next(d *mihf.Delivery) (previous uint64) {
	switch d.Kind {
	case mihf.DeliverEvent:
		return next(c, &c.links, d.Event.Link, d.Event.Sequence, d.Event.Kind.Admission() == mihf.NeverDrop)
	case mihf.DeliverHint:
		return next(c, &c.flows, d.Hint.Flow, d.Hint.Sequence, true)
	default:
		c.Break(d.Sequence())
		return 0
	}
}

func next[K comparable](c *Chains, chain *map[K]uint64, key K, sequence uint64, chained bool) uint64 {
	if *chain == nil {
		*chain = map[K]uint64{}
	}
	previous, known := (*chain)[key]
	if !known {
		if chained && len(*chain) >= maxChains {
			c.Break(sequence - 1)
			*chain = map[K]uint64{}
		}
		previous = c.floor
	}
	if chained {
		(*chain)[key] = sequence
	}
	return previous
}

// Break states that messages up to a sequence may be missing on any chain: who does not
// know the state at least up to there has to read it again.
func (c *Chains) Break(to uint64) {
	*c = Chains{floor: max(c.floor, to)}
}
