package grpcfront

import (
	"bytes"
	"time"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that ours stands on
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of SubscribeResponse and of google.protobuf.Duration.
const (
	fieldPrevious  = 1
	fieldHeld      = 2
	fieldConflated = 3
	fieldEvent     = 17
	fieldSeconds   = 1
	fieldNanos     = 2
)

// frame is a SubscribeResponse whose event is already encoded. Its sender may use it again:
// what it is marshalled to does not refer to it.
type frame struct {
	previous  uint64
	held      time.Duration
	conflated uint32
	event     []byte
}

// maxFrameHead bounds what comes before the event's bytes: 5 numbers and their tags.
const maxFrameHead = 64

// head returns everything of the message but the event's bytes, which come last.
func (f *frame) head() []byte {
	var room [maxFrameHead]byte
	b := room[:0]
	if f.previous != 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, fieldPrevious, protowire.VarintType), f.previous)
	}
	if f.held > 0 {
		var d [2 * (1 + 10)]byte
		held := d[:0]
		if s := f.held / time.Second; s != 0 {
			held = protowire.AppendVarint(protowire.AppendTag(held, fieldSeconds, protowire.VarintType), uint64(s))
		}
		if ns := f.held % time.Second; ns != 0 {
			held = protowire.AppendVarint(protowire.AppendTag(held, fieldNanos, protowire.VarintType), uint64(ns))
		}
		b = protowire.AppendBytes(protowire.AppendTag(b, fieldHeld, protowire.BytesType), held)
	}
	if f.conflated != 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, fieldConflated, protowire.VarintType), uint64(f.conflated))
	}
	b = protowire.AppendTag(b, fieldEvent, protowire.BytesType)
	return bytes.Clone(protowire.AppendVarint(b, uint64(len(f.event))))
}

// codec is gRPC's own for messages and sends frames and replies as they are. It tells what
// it cannot read.
type codec struct {
	encoding.CodecV2
	malformed func(error)
}

func newCodec(malformed func(error)) codec { return codec{encoding.GetCodecV2("proto"), malformed} }

// Unmarshal decodes a message.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	err := c.CodecV2.Unmarshal(data, v)
	if err != nil {
		c.malformed(err)
	}
	return err
}

// Marshal encodes a message, and passes on what is encoded already.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *frame:
		return mem.BufferSlice{mem.SliceBuffer(m.head()), mem.SliceBuffer(m.event)}, nil
	case *reply:
		return m.buffers(), nil
	}
	return c.CodecV2.Marshal(v)
}
