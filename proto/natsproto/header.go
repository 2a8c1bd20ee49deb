package natsproto

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"mihf.dev/mihf"
)

// Headers. NATS takes their names as they are written.
const (
	HeaderContentType = "Content-Type"
	HeaderAccept      = "Accept" // of a request: how the answer is to be written
	HeaderMethod      = "Mihf-Method"
	HeaderSession     = "Mihf-Session"
	HeaderDeliver     = "Mihf-Deliver" // where to deliver what is not an answer
	HeaderError       = "Mihf-Error"   // of a refusal: its code; the text is the payload
	HeaderType        = "Mihf-Type"
	HeaderPrevious    = "Mihf-Previous"
	HeaderHeld        = "Mihf-Held"
	HeaderConflated   = "Mihf-Conflated"
	HeaderSequence    = "Mihf-Sequence"
	HeaderBoot        = "Mihf-Boot"
	HeaderAt          = "Mihf-At" // nanoseconds of the daemon's boot time at sending
	HeaderPart        = "Mihf-Part"
	HeaderHints       = "Mihf-Hints" // where the caller may listen for hints
	HeaderLifetime    = "Mihf-Lifetime"
	// HeaderRequestInfo is what a NATS server says of who sent a request.
	HeaderRequestInfo = "Nats-Request-Info"
)

// Content types.
const (
	Protobuf = "application/x-protobuf"
	JSON     = "application/json"
	Text     = "text/plain; charset=utf-8"
)

// Type says what a message carries that its subject does not tell: on an inbox, and on
// [Sync].
type Type string

// Types.
const (
	TypeEvent       Type = "event"
	TypeHint        Type = "hint"
	TypeSnapshot    Type = "snapshot"
	TypeGap         Type = "gap"
	TypeObservation Type = "observation"
	TypeFailed      Type = "failed" // an acknowledgement was refused
	TypeEnd         Type = "end"    // nothing more comes on this inbox; on Sync: the daemon stops
	TypeAlive       Type = "alive"  // on Sync, every [AliveEvery]
	TypeHole        Type = "hole"   // on Sync: something was not published; read the state again
)

// Times that both sides go by.
const (
	// AliveEvery is how often a node says that it is there.
	AliveEvery = 5 * time.Second
	// Lifetime is how long a session lives without a heartbeat.
	Lifetime = 15 * time.Second
	// HeartbeatEvery is how often a client says that it is there, at least.
	HeartbeatEvery = 5 * time.Second
	// MaxRequest bounds the payload of a request.
	MaxRequest = 64 << 10
)

// Header is a message's header: it converts to nats.Header.
type Header = map[string][]string

// Envelope is what the headers of a delivery say.
type Envelope struct {
	Type      Type // "" where the subject tells
	Previous  uint64
	Held      time.Duration // from encoding to sending
	Conflated uint32
	At        mihf.Time   // of sending, by the daemon's clock; 0: not said
	Boot      mihf.BootID // 0: not said
	Sequence  uint64      // 0: not said
	Part      Part
}

// Part says which part of a payload that one message cannot hold this is. The zero Part is
// the whole.
type Part struct{ N, Of int }

// maxParts bounds the parts of one payload.
const maxParts = 1024

func number(h Header, key string, v uint64) {
	if v != 0 {
		h[key] = []string{strconv.FormatUint(v, 10)}
	}
}

// Header returns e as headers; what is zero is left out, but for Previous.
func (e *Envelope) Header() Header {
	h := make(Header, 8)
	h[HeaderContentType] = []string{Protobuf}
	h[HeaderPrevious] = []string{strconv.FormatUint(e.Previous, 10)}
	if e.Type != "" {
		h[HeaderType] = []string{string(e.Type)}
	}
	number(h, HeaderHeld, uint64(max(e.Held, 0)))
	number(h, HeaderConflated, uint64(e.Conflated))
	number(h, HeaderAt, uint64(max(e.At, 0)))
	number(h, HeaderSequence, e.Sequence)
	if e.Boot != 0 {
		h[HeaderBoot] = []string{e.Boot.String()}
	}
	if e.Part.Of > 1 {
		h[HeaderPart] = []string{strconv.Itoa(e.Part.N) + "/" + strconv.Itoa(e.Part.Of)}
	}
	return h
}

// one returns the value of a header; "" where it is not there.
func one(h Header, key string) (string, error) {
	switch v := h[key]; len(v) {
	case 0:
		return "", nil
	case 1:
		return v[0], nil
	default:
		return "", fmt.Errorf("%w: header %s is there %d times", mihf.ErrInvalid, key, len(v))
	}
}

// readNumber reads a header; 0 where it is not there.
func readNumber(h Header, key string, limit uint64) (uint64, error) {
	s, err := one(h, key)
	if s == "" || err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil || v > limit {
		return 0, fmt.Errorf("%w: header %s: %.40q is no number up to %d", mihf.ErrInvalid, key, s, limit)
	}
	return v, nil
}

// Limits of what headers may say.
const (
	maxHeld = 24 * time.Hour
	maxTime = 1<<63 - 1
)

// ParseEnvelope reads the headers of a delivery. One without Previous is no delivery, and
// refused: an answer that was sent astray must not pass for an event.
func ParseEnvelope(h Header) (e Envelope, err error) {
	if len(h[HeaderPrevious]) == 0 {
		return e, fmt.Errorf("%w: no header %s", mihf.ErrInvalid, HeaderPrevious)
	}
	var held, conflated, at uint64
	for _, f := range []struct {
		key   string
		v     *uint64
		limit uint64
	}{
		{HeaderPrevious, &e.Previous, 1<<64 - 1},
		{HeaderHeld, &held, uint64(maxHeld)},
		{HeaderConflated, &conflated, 1<<32 - 1},
		{HeaderAt, &at, maxTime},
		{HeaderSequence, &e.Sequence, 1<<64 - 1},
	} {
		if *f.v, err = readNumber(h, f.key, f.limit); err != nil {
			return e, err
		}
	}
	e.Held, e.Conflated, e.At = time.Duration(held), uint32(conflated), mihf.Time(at) //nolint:gosec // bounded above
	kind, err := one(h, HeaderType)
	if err != nil {
		return e, err
	}
	e.Type = Type(kind)
	if e.Boot, err = BootOf(h); err != nil {
		return e, err
	}
	e.Part, err = partOf(h)
	return e, err
}

// BootOf reads which run of the broker a message is of; 0: it does not say.
func BootOf(h Header) (mihf.BootID, error) {
	s, err := one(h, HeaderBoot)
	if s == "" || err != nil {
		return 0, err
	}
	b, err := mihf.ParseBootID(s)
	if err != nil {
		return 0, fmt.Errorf("%w: header %s: %w", mihf.ErrInvalid, HeaderBoot, err)
	}
	return b, nil
}

func partOf(h Header) (Part, error) {
	s, err := one(h, HeaderPart)
	if s == "" || err != nil {
		return Part{}, err
	}
	n, of, _ := strings.Cut(s, "/")
	which, bad := strconv.ParseUint(n, 10, 16)
	total, worse := strconv.ParseUint(of, 10, 16)
	if bad != nil || worse != nil || which < 1 || which > total || total > maxParts {
		return Part{}, fmt.Errorf("%w: header %s: %.40q is no part of at most %d", mihf.ErrInvalid, HeaderPart, s, maxParts)
	}
	return Part{int(which), int(total)}, nil
}

// At reads when a message was sent, by the daemon's clock; 0: it does not say.
func At(h Header) mihf.Time {
	at, err := readNumber(h, HeaderAt, maxTime)
	if err != nil {
		return 0
	}
	return mihf.Time(at) //nolint:gosec // bounded
}
