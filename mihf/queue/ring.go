package queue

// ring is a bounded sequence of places; old ones are overwritten. It starts small and
// grows to its bound.
type ring[T any] struct {
	slots []T
	max   uint64
	head  uint64 // the place that comes next
	tail  uint64 // the oldest place still there
}

func newRing[T any](n int) ring[T] {
	size := uint64(1)
	for size < uint64(n) {
		size *= 2
	}
	return ring[T]{slots: make([]T, min(size, 64)), max: size}
}

// oldestIfFull returns the item that next will overwrite; nil if there is room.
func (r *ring[T]) oldestIfFull() *T {
	if r.head-r.tail < r.max {
		return nil
	}
	return r.at(r.tail)
}

// next returns the slot of the next place, to be filled.
func (r *ring[T]) next() *T {
	if n := uint64(len(r.slots)); r.head-r.tail == n {
		if n < r.max {
			r.grow()
		} else {
			r.tail++
		}
	}
	s := &r.slots[r.head&uint64(len(r.slots)-1)]
	r.head++
	return s
}

func (r *ring[T]) grow() {
	bigger := make([]T, 2*len(r.slots))
	for p := r.tail; p < r.head; p++ {
		bigger[p&uint64(len(bigger)-1)] = r.slots[p&uint64(len(r.slots)-1)]
	}
	r.slots = bigger
}

func (r *ring[T]) at(place uint64) *T {
	if place < r.tail || place >= r.head {
		return nil
	}
	return &r.slots[place&uint64(len(r.slots)-1)]
}

// after returns how many places there are from one on.
func (r *ring[T]) after(place uint64) uint64 { return r.head - min(place, r.head) }
