package natsfront

import (
	"strconv"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	"mihf.dev/proto/natsproto"
)

// letter is the message that brings a session's hints: made once and used for each, since a
// Freeze must not wait for what is always the same. It is used by one goroutine.
type letter struct {
	msg          nats.Msg
	previous, at []string // the values of those headers
	payload      []byte
}

func newLetter(deliver string) *letter {
	e := natsproto.Envelope{Type: natsproto.TypeHint, At: 1}
	l := &letter{msg: nats.Msg{Subject: deliver, Header: e.Header()}}
	l.previous, l.at = l.msg.Header[natsproto.HeaderPrevious], l.msg.Header[natsproto.HeaderAt]
	return l
}

// write writes a hint that is sent at the encoder's moment.
func (l *letter) write(d *mihf.Delivery, e conv.Encoder) (*nats.Msg, error) {
	var err error
	if l.payload, err = (proto.MarshalOptions{}).MarshalAppend(l.payload[:0], e.Hint(&d.Hint)); err != nil {
		return nil, err
	}
	l.previous[0] = strconv.FormatUint(d.Previous, 10)
	l.at[0] = strconv.FormatInt(int64(e.Now), 10)
	l.msg.Data = l.payload
	return &l.msg, nil
}
