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
)

// oversized takes the place of the interface in a call whose body was not read.
const oversized = "dev.mihf.Oversized"

// frames reads a connection message by message. A message that is too large is replaced by
// one without a body. Before the first message, what the bus says in authentication
// passes as it is.
type frames struct {
	in    *bufio.Reader
	limit int
	large func()

	message []byte // what is left of the present one
	buffer  []byte // that small ones are read into
	begun   bool   // messages have begun
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

// next reads a message.
func (f *frames) next() error {
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
	if fields > maxHeader || body > maxMessage {
		return fmt.Errorf("a message of the bus has %d octets of header and %d of body", fields, body)
	}
	fields += -fields & 7
	if fixedHead+fields+body <= int64(f.limit) {
		f.message = slices.Grow(head, int(fields+body))[:fixedHead+fields+body]
		_, err := io.ReadFull(f.in, f.message[fixedHead:])
		return err
	}
	f.large()
	whole := slices.Grow(head, int(fields))[:fixedHead+fields]
	if _, err := io.ReadFull(f.in, whole[fixedHead:]); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, f.in, body); err != nil {
		return err
	}
	if f.message, err = stub(order, whole); err != nil || len(f.message) > 0 {
		return err
	}
	return f.next()
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

// stub returns what is given on in the place of a message without its body: a call that
// shows why it has none, or an error in the place of an answer; nothing for a signal.
func stub(order binary.ByteOrder, head []byte) ([]byte, error) {
	fields, err := headerFields(order, head[fixedHead:])
	if err != nil {
		return nil, err
	}
	msg := &dbus.Message{Type: dbus.Type(head[1]), Flags: dbus.Flags(head[2] & 7), Headers: map[dbus.HeaderField]dbus.Variant{}}
	set := func(f dbus.HeaderField, number byte) {
		if s, ok := fields[number].(string); ok {
			msg.Headers[f] = dbus.MakeVariant(s)
		}
	}
	set(dbus.FieldSender, fieldSender)
	set(dbus.FieldDestination, fieldDestination)
	switch msg.Type {
	case dbus.TypeMethodCall:
		path, _ := fields[fieldPath].(string)
		msg.Headers[dbus.FieldPath] = dbus.MakeVariant(dbus.ObjectPath(path))
		set(dbus.FieldMember, fieldMember)
		msg.Headers[dbus.FieldInterface] = dbus.MakeVariant(oversized)
	case dbus.TypeMethodReply, dbus.TypeError:
		serial, _ := fields[fieldReplySerial].(uint32)
		msg.Type = dbus.TypeError
		msg.Headers[dbus.FieldReplySerial] = dbus.MakeVariant(serial)
		msg.Headers[dbus.FieldErrorName] = dbus.MakeVariant("org.freedesktop.DBus.Error.LimitsExceeded")
		const text = "the answer is larger than this client takes"
		msg.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(text))
		msg.Body = []any{text}
	default:
		return nil, nil
	}
	var b bytes.Buffer
	if err := msg.EncodeTo(&b, order); err != nil {
		return nil, fmt.Errorf("a large message of the bus: %w", err)
	}
	order.PutUint32(b.Bytes()[8:], order.Uint32(head[8:])) // its serial, by which it is answered
	return b.Bytes(), nil
}

var errHeader = errors.New("a header of the bus makes no sense")

// headerFields reads the fields of a header, a(yv) without its length, as far as they are
// strings and numbers: D-Bus has no others.
func headerFields(order binary.ByteOrder, b []byte) (map[byte]any, error) {
	fields := map[byte]any{}
	// Positions count from the message's begin, which is a multiple of 8 before b.
	for at := 0; at < len(b); at += -at & 7 {
		if len(b)-at < 4 {
			return fields, nil // padding
		}
		number, typ := b[at], b[at+2]
		if number == 0 {
			return fields, nil // padding
		}
		if b[at+1] != 1 || b[at+3] != 0 {
			return nil, errHeader
		}
		at += 4
		switch typ {
		case 's', 'o':
			if len(b)-at < 4 {
				return nil, errHeader
			}
			n := int64(order.Uint32(b[at:]))
			if n > int64(len(b)-at-5) {
				return nil, errHeader
			}
			fields[number] = string(b[at+4 : at+4+int(n)])
			at += 4 + int(n) + 1
		case 'g':
			if at >= len(b) || int(b[at]) > len(b)-at-2 {
				return nil, errHeader
			}
			at += 1 + int(b[at]) + 1
		case 'u':
			if len(b)-at < 4 {
				return nil, errHeader
			}
			fields[number] = order.Uint32(b[at:])
			at += 4
		default:
			return nil, errHeader
		}
	}
	return fields, nil
}
