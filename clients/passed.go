package clients

import "mihf.dev/mihf"

// PassedOver keeps the order whole where deliveries of kinds that a newer broker added are
// passed over: nothing is missing without them. The zero value has passed over none.
type PassedOver struct{ before mihf.Opt[uint64] }

// Add passes over a delivery, which named the one before it.
func (p *PassedOver) Add(previous uint64) { p.before = mihf.Some(p.before.Or(previous)) }

// Join has d follow what was before those that were passed over since the last one joined.
func (p *PassedOver) Join(d *mihf.Delivery) {
	d.Previous = p.before.Or(d.Previous)
	p.before = mihf.Opt[uint64]{}
}
