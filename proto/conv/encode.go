package conv

import (
	"math"
	"net/netip"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// Encoder turns values into messages that are sent at Now.
type Encoder struct {
	Now  mihf.Time
	Wall time.Time   // the wall time at Now; zero: messages carry none
	Node mihf.NodeID // this host
	// PoA returns what every id of a point of attachment is sent as; nil: they are sent as they
	// are.
	PoA func(mihf.PoA) mihf.PoA
}

func (e Encoder) poa(p mihf.PoA) string {
	if e.PoA != nil {
		p = e.PoA(p)
	}
	return text(p)
}

// age returns how long ago t was; nil for no time.
func (e Encoder) age(t mihf.Time) *durationpb.Duration {
	if t.IsZero() {
		return nil
	}
	return durationpb.New(e.Now.Sub(t))
}

// until returns how far ahead t is; nil for no time.
func (e Encoder) until(t mihf.Time) *durationpb.Duration {
	if t.IsZero() {
		return nil
	}
	return durationpb.New(t.Sub(e.Now))
}

// ahead re-bases a duration counted from the moment at to the moment of encoding.
func (e Encoder) ahead(at mihf.Time, d time.Duration) *durationpb.Duration {
	if at.IsZero() {
		at = e.Now
	}
	return durationpb.New(d - e.Now.Sub(at))
}

func (e Encoder) wall(t mihf.Time) *timestamppb.Timestamp {
	if e.Wall.IsZero() || t.IsZero() {
		return nil
	}
	return timestamppb.New(e.Wall.Add(-e.Now.Sub(t)))
}

// span encodes a length of time whose zero means "not given".
func span(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

func optSpan(o mihf.Opt[time.Duration]) *durationpb.Duration {
	if d, ok := o.Get(); ok {
		return durationpb.New(d)
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// number encodes a number that may be none.
func number(v float64) *float64 {
	if !finite(v) {
		return nil
	}
	return &v
}

func text[T ~string](s T) string {
	if utf8.ValidString(string(s)) {
		return string(s)
	}
	return mihf.EscapeString(string(s))
}

func addr(a netip.Addr) *string {
	if !a.IsValid() {
		return nil
	}
	s := text(a.String())
	return &s
}

// addrPort writes an unknown address with a known port as ":port".
func addrPort(a netip.AddrPort) *string {
	var s string
	switch {
	case a.Addr().IsValid():
		s = text(a.String())
	case a.Port() != 0:
		s = ":" + strconv.Itoa(int(a.Port()))
	default:
		return nil
	}
	return &s
}

func bootID(b mihf.BootID) string {
	if b == 0 {
		return ""
	}
	return b.String()
}

// shifted encodes an enumeration whose first value is 0 in the vocabulary; in the
// protocol 0 is "unspecified".
func shifted[P ~int32, M ~uint8](m M) P { return P(m) + 1 }

func values(vs *mihf.Values) []*mihv1.Value {
	if vs.Len() == 0 {
		return nil
	}
	out := make([]*mihv1.Value, 0, vs.Len())
	vs.All(func(p mihf.Parameter, v float64) bool {
		out = append(out, &mihv1.Value{Parameter: shifted[mihv1.Parameter](p), Value: v})
		return true
	})
	return out
}

func each[M, P any](in []M, f func(*M) *P) []*P {
	if len(in) == 0 {
		return nil
	}
	out := make([]*P, len(in))
	for i := range in {
		out[i] = f(&in[i])
	}
	return out
}
