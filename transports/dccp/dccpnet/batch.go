package dccpnet

import "sync"

// batchBytes and batchPackets bound what is sent with one call of a carrier: what one
// segmented send of UDP takes.
const (
	batchBytes   = 62 << 10
	batchPackets = 64
)

// batch collects packets to be sent together.
type batch struct {
	b       []byte
	lengths []int
}

var batches = sync.Pool{New: func() any {
	return &batch{b: make([]byte, 0, batchBytes+2048), lengths: make([]int, 0, batchPackets)}
}}

func (b *batch) reset() { b.b, b.lengths = b.b[:0], b.lengths[:0] }

func (b *batch) room() bool { return len(b.b) < batchBytes-2048 && len(b.lengths) < batchPackets }

// add takes out, which is b.b with a packet behind it.
func (b *batch) add(out []byte) {
	b.lengths = append(b.lengths, len(out)-len(b.b))
	b.b = out
}
