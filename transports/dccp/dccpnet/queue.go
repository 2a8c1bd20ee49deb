package dccpnet

import "sync"

// A buffer holds one datagram.
type buffer struct {
	b     []byte
	small [1500]byte
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// hold returns a buffer with a copy of data.
func hold(data []byte) *buffer {
	x := buffers.Get().(*buffer)
	if len(data) <= len(x.small) {
		x.b = x.small[:len(data)]
	} else {
		x.b = make([]byte, len(data))
	}
	copy(x.b, data)
	return x
}

func (x *buffer) free() {
	x.b = nil
	buffers.Put(x)
}

// queue is a ring of datagrams with a bound. What it takes grows with what is in it.
type queue struct {
	ring  []*buffer
	first int
	n     int
	most  int
}

func (q *queue) full() bool { return q.n >= q.most }

// push adds a copy of data, and reports whether there was room.
func (q *queue) push(data []byte) bool {
	if q.full() {
		return false
	}
	if q.n == len(q.ring) {
		grown := make([]*buffer, min(max(2*len(q.ring), 8), q.most))
		for i := range q.n {
			grown[i] = q.ring[(q.first+i)%len(q.ring)]
		}
		q.ring, q.first = grown, 0
	}
	q.ring[(q.first+q.n)%len(q.ring)] = hold(data)
	q.n++
	return true
}

// front returns the oldest datagram; the queue must not be empty.
func (q *queue) front() []byte { return q.ring[q.first].b }

// pop frees the oldest.
func (q *queue) pop() {
	q.ring[q.first].free()
	q.ring[q.first] = nil
	q.first = (q.first + 1) % len(q.ring)
	if q.n--; q.n == 0 && len(q.ring) > 64 {
		q.ring = nil // an idle connection is to be small
		q.first = 0
	}
}

// drain frees all.
func (q *queue) drain() {
	for q.n > 0 {
		q.pop()
	}
	q.ring, q.first = nil, 0
}
