package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"golang.org/x/term"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"mihf.dev/cmd/internal/show"
	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
)

// print writes lines.
func (a *app) print(lines ...string) error {
	if len(lines) == 0 {
		return nil
	}
	if _, err := a.out.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		return fmt.Errorf("write standard output: %w", err)
	}
	return nil
}

// printLine writes a line of a stream. In a terminal it is broken at words, and goes on
// below cell indent.
func (a *app) printLine(line string, indent int) error {
	fd := int(a.out.Fd())
	if term.IsTerminal(fd) {
		if width, _, err := term.GetSize(fd); err == nil {
			line = show.Wrap(line, indent, width)
		}
	}
	return a.print(line)
}

// encoder encodes what is known now.
func (a *app) encoder(node mihf.NodeID) conv.Encoder {
	return conv.Encoder{Now: a.clock.Now(), Wall: time.Now(), Node: node}
}

// printJSON writes a message on one line.
func (a *app) printJSON(m proto.Message) error {
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, b); err != nil { // protojson varies its blanks on purpose
		return fmt.Errorf("encode %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return a.print(printable(line.Bytes()))
}

// printable writes what a terminal would obey, or not show, as JSON's escapes: encoders
// leave C1 and bidirectional control characters as they are. These occur within strings
// only.
func printable(b []byte) string {
	var s strings.Builder
	for _, r := range string(b) {
		switch {
		case unicode.IsPrint(r):
			s.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&s, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&s, `\u%04x`, r)
		}
	}
	return s.String()
}

// printValue writes a value that is no message of the protocol.
func (a *app) printValue(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	return a.print(printable(b))
}

// delivery is a delivery as it passes on a subscription.
func delivery(e conv.Encoder, d *mihf.Delivery) *mihv1.SubscribeResponse {
	p := &mihv1.SubscribeResponse{Previous: d.Previous, Conflated: d.Conflated}
	switch d.Kind {
	case mihf.DeliverEvent:
		p.Item = &mihv1.SubscribeResponse_Event{Event: e.Event(&d.Event)}
	case mihf.DeliverHint:
		p.Item = &mihv1.SubscribeResponse_Hint{Hint: e.Hint(&d.Hint)}
	case mihf.DeliverSnapshot:
		p.Item = &mihv1.SubscribeResponse_Snapshot{Snapshot: e.Snapshot(d.Snapshot)}
	case mihf.DeliverGap:
		p.Item = &mihv1.SubscribeResponse_Gap{Gap: conv.EncodeGap(&d.Gap)}
	}
	return p
}

// wallTime shows a moment as the time of day.
func (a *app) wallTime(t mihf.Time) string { return a.clock.Wall(t).Format("15:04:05.000") }

// ago shows how long ago a moment was.
func (a *app) ago(t mihf.Time) time.Duration { return max(a.clock.Now().Sub(t), 0) }
