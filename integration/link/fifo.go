package link

// fifo is a queue whose memory is used again. The zero fifo is empty.
type fifo[T any] struct {
	items []T // a ring
	first int
	n     int
}

func (f *fifo[T]) len() int { return f.n }

func (f *fifo[T]) push(v T) {
	if f.n == len(f.items) {
		larger := make([]T, max(16, 2*f.n))
		for i := range f.n {
			larger[i] = f.items[(f.first+i)%f.n]
		}
		f.items, f.first = larger, 0
	}
	f.items[(f.first+f.n)%len(f.items)] = v
	f.n++
}

// front returns the oldest; there must be one.
func (f *fifo[T]) front() *T { return &f.items[f.first] }

func (f *fifo[T]) pop() T {
	var zero T
	v := f.items[f.first]
	f.items[f.first] = zero
	f.first = (f.first + 1) % len(f.items)
	f.n--
	return v
}
