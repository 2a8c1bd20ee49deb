package conv

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// Limits of what a decoder accepts.
const (
	maxSpan  = 24 * time.Hour             // of a length of time in a request
	maxAge   = 100 * 365 * 24 * time.Hour // of a moment, to either side
	maxID    = 64                         // octets of an identifier
	maxAddr  = 128                        // octets of an address with zone
	maxItems = 4096                       // of a list in a request
)

// Decoder turns messages that arrived at Now, after they were held by their sender,
// into values.
type Decoder struct {
	Now  mihf.Time
	Held time.Duration // the envelope's; see [Held]
}

// reader keeps the first error of a message and where it was. While all is well it
// allocates nothing: the place is put together on the way out.
type reader struct {
	origin mihf.Time // the moment of encoding, on our clock
	path   string    // of the message itself, in front of every field
	where  string    // of the first error; "": none
	what   string
}

func (d Decoder) reader() *reader { return &reader{origin: d.Now.Add(-d.Held)} }

func (r *reader) fail(field, format string, args ...any) {
	if r.where == "" {
		r.where, r.what = field, fmt.Sprintf(format, args...)
	}
}

// error returns the first error.
func (r *reader) error() error {
	if r.where == "" {
		return nil
	}
	return fmt.Errorf("%w: %s%s: %s", mihf.ErrInvalid, r.path, r.where, r.what)
}

// mark and in put a field's name in front of the errors that came between them.
func (r *reader) mark() bool { return r.where != "" }

func (r *reader) in(field string, failedBefore bool) {
	if !failedBefore && r.where != "" {
		r.where = field + "." + r.where
	}
}

// Held reads the time that a message waited at its sender. What makes no sense is 0.
func Held(d *durationpb.Duration) time.Duration {
	if d == nil || d.CheckValid() != nil {
		return 0
	}
	return min(max(d.AsDuration(), 0), maxSpan)
}

func (r *reader) duration(field string, d *durationpb.Duration, low, high time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if err := d.CheckValid(); err != nil {
		r.fail(field, "%v", err)
		return 0
	}
	v := d.AsDuration()
	if v < low || v > high {
		r.fail(field, "%v is outside %v to %v", v, low, high)
		return 0
	}
	return v
}

// span reads a length of time; absent is 0.
func (r *reader) span(field string, d *durationpb.Duration) time.Duration {
	return r.duration(field, d, 0, maxSpan)
}

// long reads a length of time that may be as long as a machine runs.
func (r *reader) long(field string, d *durationpb.Duration) time.Duration {
	return r.duration(field, d, -maxAge, maxAge)
}

func (r *reader) optSpan(field string, d *durationpb.Duration) mihf.Opt[time.Duration] {
	if d == nil {
		return mihf.Opt[time.Duration]{}
	}
	return mihf.Some(r.span(field, d))
}

func (r *reader) optLong(field string, d *durationpb.Duration) mihf.Opt[time.Duration] {
	if d == nil {
		return mihf.Opt[time.Duration]{}
	}
	return mihf.Some(r.long(field, d))
}

// ago reads an age as a moment; absent is no time.
func (r *reader) ago(field string, d *durationpb.Duration) mihf.Time {
	if d == nil {
		return 0
	}
	return moment(r.origin.Add(-r.long(field, d)))
}

// from reads a time to something as a moment; absent is no time.
func (r *reader) from(field string, d *durationpb.Duration) mihf.Time {
	if d == nil {
		return 0
	}
	return moment(r.origin.Add(r.long(field, d)))
}

// moment keeps a computed time off the value that means "never".
func moment(t mihf.Time) mihf.Time {
	if t.IsZero() {
		return 1
	}
	return t
}

// ahead reads a time to something, counted from the moment at.
func (r *reader) ahead(field string, at mihf.Time, d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if at.IsZero() {
		at = r.origin
	}
	return r.long(field, d) + r.origin.Sub(at)
}

func (r *reader) number(field string, v *float64) float64 {
	if v == nil {
		return 0
	}
	return r.finite(field, *v)
}

func (r *reader) finite(field string, v float64) float64 {
	if !finite(v) {
		r.fail(field, "%v is not a finite number", v)
		return 0
	}
	return v
}

// enum reads an enumeration that [shifted] wrote. Unspecified is an error.
func enum[M ~uint8, P ~int32](r *reader, field string, names map[int32]string, p P) M {
	if _, ok := names[int32(p)]; !ok || p == 0 {
		r.fail(field, "%d is not one of its values", p)
		return 0
	}
	return M(p - 1)
}

// enumOr is enum where unspecified means the first value.
func enumOr[M ~uint8, P ~int32](r *reader, field string, names map[int32]string, p P) M {
	if p == 0 {
		return 0
	}
	return enum[M](r, field, names, p)
}

func (r *reader) parameter(p mihv1.Parameter) mihf.Parameter {
	return enum[mihf.Parameter](r, "parameter", mihv1.Parameter_name, p)
}

// values reads what a broker knows of a link. A parameter that a newer one added is passed
// over.
func (r *reader) values(field string, in []*mihv1.Value) (vs mihf.Values) {
	for i, v := range in {
		if _, known := mihv1.Parameter_name[int32(v.GetParameter())]; !known {
			continue
		}
		failed := r.mark()
		p := r.parameter(v.GetParameter())
		if !vs.Set(p, v.GetValue()) {
			r.fail("value", "%v", p.Check(v.GetValue()))
		}
		if !failed && r.mark() {
			r.in(field+"["+strconv.Itoa(i)+"]", failed)
			return mihf.Values{}
		}
	}
	return vs
}

func (r *reader) boot(s string) mihf.BootID {
	if s == "" {
		return 0
	}
	b, err := mihf.ParseBootID(s)
	if err != nil {
		r.fail("boot_id", "%v", err)
	}
	return b
}

func (r *reader) prediction(field, s string) mihf.PredictionID {
	id, err := mihf.ParsePredictionID(s)
	if err != nil {
		r.fail(field, "%v", err)
	}
	return id
}

// id reads an identifier in a request: printable ASCII without spaces.
func (r *reader) id(field, s string) string {
	if len(s) > maxID {
		r.fail(field, "%d octets, at most %d", len(s), maxID)
		return ""
	}
	if strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' }) {
		r.fail(field, "%q has other characters than printable ASCII", s)
		return ""
	}
	return s
}

// link reads a link id in a request; "" is none.
func (r *reader) link(field, s string) mihf.LinkID {
	if id := mihf.LinkID(s); s == "" || id.Valid() {
		return id
	}
	r.fail(field, "%.40q is not a link id: want <type>-<8 hexadecimal digits>", s)
	return ""
}

func (r *reader) addr(field string, s *string) netip.Addr {
	if s == nil {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(*s)
	if err != nil || len(*s) > maxAddr {
		r.fail(field, "%.40q is not an IP address", *s)
	}
	return a
}

func (r *reader) addrPort(field string, s *string) netip.AddrPort {
	if s == nil {
		return netip.AddrPort{}
	}
	if port, ok := strings.CutPrefix(*s, ":"); ok {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			r.fail(field, "%.40q is not a port", *s)
		}
		return netip.AddrPortFrom(netip.Addr{}, uint16(n))
	}
	a, err := netip.ParseAddrPort(*s)
	if err != nil || len(*s) > maxAddr {
		r.fail(field, "%.40q is not an IP address with a port", *s)
	}
	return a
}

// items checks the length of a list in a request.
func (r *reader) items(field string, n, limit int) bool {
	if n > limit {
		r.fail(field, "%d items, at most %d", n, limit)
	}
	return n <= limit
}

// list decodes each item of a list with its place in the errors' path.
func list[P, M any](r *reader, field string, in []*P, f func(*P) M) []M {
	if len(in) == 0 {
		return nil
	}
	out := make([]M, len(in))
	for i, p := range in {
		failed := r.mark()
		out[i] = f(p)
		if !failed && r.mark() {
			r.in(field+"["+strconv.Itoa(i)+"]", failed)
		}
	}
	return out
}

// sub decodes a message in a message; absent is nil.
func sub[P, M any](r *reader, field string, in *P, f func(*P) M) *M {
	if in == nil {
		return nil
	}
	failed := r.mark()
	out := f(in)
	r.in(field, failed)
	return &out
}
