package busconn

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/godbus/dbus/v5"
)

// Bounds of D-Bus itself.
const (
	fixedHead  = 16       // of a message: what comes before its header's fields
	maxHeader  = 64 << 10 // of the fields; far more than names and paths need
	maxMessage = 1 << 27

	smallMessage = 4 << 10 // larger ones are read into a buffer of their own
)

// Numbers of header fields.
const (
	fieldPath        = 1
	fieldInterface   = 2
	fieldMember      = 3
	fieldReplySerial = 5
	fieldDestination = 6
	fieldSender      = 7
	fieldSignature   = 8
	numFields        = 9
)

// frames reads a connection message by message. Calls and signals are handed over: godbus
// ends a connection at the first message that it cannot decode, and the bus passes on some
// of those, from anybody to anybody. Decoding costs many times what sending costs, so that
// calls are not decoded here, and signals only from whom they are wanted. Answers pass as
// they are, and so does, before the first message, what the bus says in authentication. An
// answer that cannot be read is replaced by an error.
type frames struct {
	in     *bufio.Reader
	limit  int
	call   func(m *message, whole []byte) // whole is good until it returns
	signal func(*dbus.Signal)
	heed   func(sender string) bool    // whose signals are wanted
	unread func(m *message, why error) // one that was not read

	message []byte // what is left of the present answer
	buffer  []byte // that small messages are read into
	begun   bool   // messages have begun
}

// message is what the head of a message says.
type message struct {
	typ    dbus.Type
	flags  dbus.Flags
	serial uint32
	text   [numFields]string // the fields that are texts, as far as they could be read
	reply  uint32            // the serial that is answered; 0: none
}

// Read gives the present message's octets.
func (f *frames) Read(p []byte) (int, error) {
	if len(f.message) == 0 {
		if !f.begun {
			b, err := f.in.Peek(1)
			if err != nil {
				return 0, err
			}
			if b[0] != 'l' && b[0] != 'B' { // no line of the authentication begins with these
				return f.in.Read(p)
			}
			f.begun = true
		}
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.message)
	f.message = f.message[n:]
	return n, nil
}

// next reads messages up to an answer.
func (f *frames) next() error {
	for len(f.message) == 0 {
		if err := f.one(); err != nil {
			return err
		}
	}
	return nil
}

// one reads a message.
func (f *frames) one() error {
	if f.buffer == nil {
		f.buffer = make([]byte, smallMessage)
	}
	head := f.buffer[:fixedHead]
	if _, err := io.ReadFull(f.in, head); err != nil {
		return err
	}
	order, err := orderOf(head[0])
	if err != nil {
		return err
	}
	fields, body := int64(order.Uint32(head[12:])), int64(order.Uint32(head[4:]))
	if fields+body > maxMessage {
		return fmt.Errorf("a message of the bus has %d octets of header and %d of body", fields, body)
	}
	fields += -fields & 7
	size := fixedHead + fields + body
	why, passed := error(nil), int64(0)
	if size > int64(f.limit) {
		why = ErrTooLarge
		passed, size = body, fixedHead+fields
		if fields > maxHeader {
			passed, size = fields+body, fixedHead
		}
	}
	whole := slices.Grow(head, int(size)-fixedHead)[:size]
	if _, err := io.ReadFull(f.in, whole[fixedHead:]); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, f.in, passed); err != nil {
		return err
	}
	return f.sort(order, whole, int(min(fields, size-fixedHead)), why)
}

// sort hands a message over, or leaves it for Read. why says why it was not read to its end.
func (f *frames) sort(order binary.ByteOrder, b []byte, fields int, why error) (err error) {
	m := &message{typ: dbus.Type(b[1]), flags: dbus.Flags(b[2]), serial: order.Uint32(b[8:])}
	m.read(order, b[fixedHead:fixedHead+fields])
	switch {
	case m.typ == dbus.TypeSignal && why == nil && !f.heed(m.text[fieldSender]):
		return nil
	case m.typ == dbus.TypeMethodCall && why == nil:
		f.call(m, b)
		return nil
	case why == nil:
		why = f.decoded(m.typ, b)
	}
	if why != nil {
		f.unread(m, why)
		f.message, err = m.instead(order)
	}
	return err
}

// decoded hands a signal over, or leaves an answer for Read, if it can be decoded.
func (f *frames) decoded(typ dbus.Type, b []byte) error {
	msg, err := decode(b)
	switch {
	case err != nil:
		return err
	case typ == dbus.TypeSignal:
		f.signal(signalOf(msg))
	default:
		f.message = b
	}
	return nil
}

// errUnreadable says that a message was not decoded.
var errUnreadable = errors.New("the message cannot be read")

// decode decodes a message that may come from anybody.
func decode(b []byte) (msg *dbus.Message, err error) {
	defer func() {
		if v := recover(); v != nil { // godbus's own are errors
			msg, err = nil, fmt.Errorf("%w: %v", errUnreadable, v)
		}
	}()
	if msg, err = dbus.DecodeMessage(bytes.NewReader(b)); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return msg, nil
}

func orderOf(c byte) (binary.ByteOrder, error) {
	switch c {
	case 'l':
		return binary.LittleEndian, nil
	case 'B':
		return binary.BigEndian, nil
	}
	return nil, fmt.Errorf("the bus sent %q where a message begins", c)
}

// instead returns what is given on in the place of an answer that was not read: an error.
// Anything else has nothing in its place.
func (m *message) instead(order binary.ByteOrder) ([]byte, error) {
	if (m.typ != dbus.TypeMethodReply && m.typ != dbus.TypeError) || m.reply == 0 {
		return nil, nil
	}
	const text = "the answer cannot be read: it is larger than this client takes, or makes no sense"
	msg := &dbus.Message{Type: dbus.TypeError, Body: []any{text}, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(m.reply), dbus.FieldErrorName: dbus.MakeVariant(limitsExceeded),
		dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(text)), dbus.FieldDestination: dbus.MakeVariant(m.text[fieldDestination]),
		dbus.FieldSender: dbus.MakeVariant(m.text[fieldSender]),
	}}
	var b bytes.Buffer
	if err := msg.EncodeTo(&b, order); err != nil {
		return nil, fmt.Errorf("an answer that cannot be read: %w", err)
	}
	order.PutUint32(b.Bytes()[8:], m.serial)
	return b.Bytes(), nil
}

// read reads the fields of a header, a(yv) without its length, up to the first that is
// neither a text nor a number: D-Bus has no others.
func (m *message) read(order binary.ByteOrder, b []byte) {
	// Positions count from the message's begin, which is a multiple of 8 before b.
	for at := 0; len(b)-at >= 4 && b[at] != 0; at += -at & 7 { // or padding
		number, typ := b[at], b[at+2]
		if b[at+1] != 1 || b[at+3] != 0 {
			return
		}
		at += 4
		text, n := fieldText(order, typ, b[at:])
		switch {
		case n == 0:
			return
		case typ == 'u' && number == fieldReplySerial:
			m.reply = order.Uint32(b[at:])
		case typ != 'u' && number < numFields:
			m.text[number] = string(text)
		}
		at += n
	}
}

// fieldText returns the value of a field, if it is a text, and how many octets it takes; 0: it
// makes no sense.
func fieldText(order binary.ByteOrder, typ byte, b []byte) (text []byte, size int) {
	switch {
	case typ == 'u' && len(b) >= 4:
		return nil, 4
	case typ == 'g' && len(b) > 0 && int(b[0]) <= len(b)-2:
		n := int(b[0])
		return b[1 : 1+n], 1 + n + 1
	case (typ == 's' || typ == 'o') && len(b) >= 4:
		if n := int64(order.Uint32(b)); n <= int64(len(b)-5) {
			return b[4 : 4+n], 4 + int(n) + 1
		}
	}
	return nil, 0
}
