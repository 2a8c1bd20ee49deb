package sim

// ring is a queue of packets; the zero ring is empty.
type ring struct {
	slots []*Packet // a power of two
	first int
	count int
}

func (r *ring) len() int { return r.count }

func (r *ring) push(p *Packet) {
	if r.count == len(r.slots) {
		grown := make([]*Packet, max(16, 2*len(r.slots)))
		for i := range r.count {
			grown[i] = r.slots[(r.first+i)&(len(r.slots)-1)]
		}
		r.slots, r.first = grown, 0
	}
	r.slots[(r.first+r.count)&(len(r.slots)-1)] = p
	r.count++
}

// pop returns the oldest packet; nil if there is none.
func (r *ring) pop() *Packet {
	if r.count == 0 {
		return nil
	}
	p := r.slots[r.first]
	r.slots[r.first] = nil
	r.first = (r.first + 1) & (len(r.slots) - 1)
	r.count--
	return p
}
