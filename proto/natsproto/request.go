package natsproto

import (
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
)

// Request is what the headers of a request say.
type Request struct {
	Method  string // "" where there is none
	Session string // of the client's choice
	Deliver string // subject
	JSON    bool   // the payload is JSON
	Answer  Coding // how the answer is to be written
}

// Coding is how a payload is written.
type Coding uint8

// Codings.
const (
	AsProtobuf Coding = iota
	AsJSON
)

// maxSession bounds the octets of a session's id.
const maxSession = 64

// ParseRequest reads the headers of a request.
func ParseRequest(h Header) (r Request, err error) {
	var content, accept string
	for _, f := range []struct {
		key string
		v   *string
	}{
		{HeaderMethod, &r.Method},
		{HeaderSession, &r.Session},
		{HeaderDeliver, &r.Deliver},
		{HeaderContentType, &content},
		{HeaderAccept, &accept},
	} {
		if *f.v, err = one(h, f.key); err != nil {
			return r, err
		}
	}
	if len(r.Session) > maxSession || strings.ContainsFunc(r.Session, func(c rune) bool { return c >= 0x80 || !plain(byte(c)) }) {
		return r, fmt.Errorf("%w: header %s: %.80q is not 1 to %d letters, digits, - or _", mihf.ErrInvalid, HeaderSession, r.Session, maxSession)
	}
	if r.JSON, err = isJSON(HeaderContentType, content, false); err != nil {
		return r, err
	}
	answer, err := isJSON(HeaderAccept, accept, r.JSON)
	if answer {
		r.Answer = AsJSON
	}
	return r, err
}

// isJSON reads a content type; other is what none, and any, mean.
func isJSON(key, value string, other bool) (bool, error) {
	if value == "" || value == "*/*" {
		return other, nil
	}
	kind, _, err := mime.ParseMediaType(value)
	switch {
	case err == nil && kind == JSON:
		return true, nil
	case err == nil && kind == Protobuf:
		return false, nil
	}
	return false, fmt.Errorf("%w: header %s: %.80q is not known; give %s or %s", mihf.ErrInvalid, key, value, Protobuf, JSON)
}

// Decode reads the payload of a request.
func (r *Request) Decode(data []byte, into proto.Message) error {
	if len(data) > MaxRequest {
		return fmt.Errorf("%w: a request of %d octets, at most %d", mihf.ErrLimit, len(data), MaxRequest)
	}
	var err error
	switch {
	case r.JSON && len(data) > 0:
		err = protojson.Unmarshal(data, into)
	case !r.JSON:
		err = proto.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("%w: the payload is no %s: %w", mihf.ErrInvalid, into.ProtoReflect().Descriptor().Name(), err)
	}
	return nil
}

// Encode writes an answer and says how it is written.
func (c Coding) Encode(m proto.Message) (data []byte, contentType string, err error) {
	if c == AsJSON {
		data, err = protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
		contentType = JSON
	} else {
		data, err = proto.Marshal(m)
		contentType = Protobuf
	}
	if err != nil {
		return nil, "", fmt.Errorf("encode %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return data, contentType, nil
}

// Refuse writes an error as an answer: the code for the header, and the payload.
func (c Coding) Refuse(err error) (code string, data []byte, contentType string) {
	code = Code(err)
	if c == AsJSON {
		data, _ = json.Marshal(struct { // strings always encode
			Error string `json:"error"`
		}{err.Error()})
		return code, data, JSON
	}
	return code, []byte(err.Error()), Text
}
