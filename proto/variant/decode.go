package variant

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"mihf.dev/mihf"
)

// Decode fills m, which must be empty, from a dictionary that a broker sent. Keys that are
// not known are passed over: a newer broker may have added them.
func Decode(in Dict, m proto.Message) error {
	return failure(decoder{}.message(in, m.ProtoReflect()))
}

// DecodeRequest fills m, which must be empty, from a dictionary that a client sent. A key or
// name that is not known is refused, and so are two alternatives at once.
func DecodeRequest(in Dict, m proto.Message) error {
	return failure(decoder{strict: true}.message(in, m.ProtoReflect()))
}

// DecodeRequests is [DecodeRequest] for an aa{sv}.
func DecodeRequests[T any, M interface {
	*T
	proto.Message
}](in []Dict) ([]M, error) {
	out := make([]M, len(in))
	for i := range in {
		out[i] = new(T)
		if p := (decoder{strict: true}).message(in[i], out[i].ProtoReflect()); p != nil {
			return nil, failure(p.at("[" + strconv.Itoa(i) + "]"))
		}
	}
	return out, nil
}

// problem is what is wrong, and where.
type problem struct{ where, what string }

func wrong(format string, args ...any) *problem { return &problem{what: fmt.Sprintf(format, args...)} }

// at puts a key or index in front of the place.
func (p *problem) at(place string) *problem {
	if p.where != "" && !strings.HasPrefix(p.where, "[") {
		place += "."
	}
	return &problem{place + p.where, p.what}
}

func failure(p *problem) error {
	if p == nil {
		return nil
	}
	return fmt.Errorf("%w: %s: %s", mihf.ErrInvalid, p.where, p.what)
}

type decoder struct{ strict bool }

func (d decoder) message(in Dict, m protoreflect.Message) *problem {
	used := 0
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		k := key(fd)
		v, given := in[k]
		if given {
			used++
		}
		if octets(fd) {
			if text, ok := in[textKey(fd)]; ok {
				used++
				if !given {
					k, v, given = textKey(fd), text, true
				}
			}
		}
		if !given {
			continue
		}
		if o := fd.ContainingOneof(); d.strict && o != nil && !o.IsSynthetic() && m.WhichOneof(o) != nil {
			return wrong("%s is given too, and only one of them can be", m.WhichOneof(o).Name()).at(k)
		}
		if p := d.field(m, fd, v.Value()); p != nil {
			return p.at(k)
		}
	}
	if d.strict && used < len(in) {
		return unknownKey(in, m.Descriptor())
	}
	return nil
}

// unknownKey names the first key, by name, that the message has no field for.
func unknownKey(in Dict, md protoreflect.MessageDescriptor) *problem {
	var known, unknown []string
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		known = append(known, key(fd))
		if octets(fd) {
			known = append(known, textKey(fd))
		}
	}
	for k := range in {
		if !slices.Contains(known, k) {
			unknown = append(unknown, k)
		}
	}
	slices.Sort(unknown)
	if len(known) == 0 {
		return wrong("is not known here; no key is").at(short(unknown[0]))
	}
	return wrong("is not known here; want %s", strings.Join(known, ", ")).at(short(unknown[0]))
}

func short(s string) string { return fmt.Sprintf("%.40q", s) }

func (d decoder) field(m protoreflect.Message, fd protoreflect.FieldDescriptor, v any) *problem {
	if fd.IsList() {
		items, ok := elements(v)
		if !ok {
			return mismatch(v, "a list")
		}
		l := m.Mutable(fd).List()
		for i, item := range items {
			x, p := d.single(fd, l.NewElement, item)
			if p != nil {
				return p.at("[" + strconv.Itoa(i) + "]")
			}
			l.Append(x)
		}
		return nil
	}
	x, p := d.single(fd, func() protoreflect.Value { return m.NewField(fd) }, v)
	if p == nil {
		m.Set(fd, x)
	}
	return p
}

// single reads one value. empty makes a message to fill.
func (d decoder) single(fd protoreflect.FieldDescriptor, empty func() protoreflect.Value, v any) (protoreflect.Value, *problem) {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		if b, ok := v.(bool); ok {
			return protoreflect.ValueOfBool(b), nil
		}
		return protoreflect.Value{}, mismatch(v, "b")
	case protoreflect.StringKind:
		if s, ok := stringOf(v); ok {
			return protoreflect.ValueOfString(s), nil
		}
		return protoreflect.Value{}, mismatch(v, "s")
	case protoreflect.BytesKind:
		return octetsOf(v)
	case protoreflect.EnumKind:
		return d.enum(fd.Enum(), v)
	case protoreflect.MessageKind:
		return d.sub(fd, empty, v)
	default:
		return number(fd.Kind(), v)
	}
}

func (d decoder) sub(fd protoreflect.FieldDescriptor, empty func() protoreflect.Value, v any) (protoreflect.Value, *problem) {
	switch fd.Message().FullName() {
	case durationName:
		n, p := signed(v, math.MinInt64, math.MaxInt64)
		return protoreflect.ValueOfMessage(durationpb.New(time.Duration(n)).ProtoReflect()), p
	case timestampName:
		n, p := signed(v, math.MinInt64, math.MaxInt64)
		return protoreflect.ValueOfMessage(timestamppb.New(time.Unix(0, n)).ProtoReflect()), p
	}
	in, ok := v.(Dict)
	if !ok {
		return protoreflect.Value{}, mismatch(v, "a{sv}")
	}
	x := empty()
	return x, d.message(in, x.Message())
}

func (d decoder) enum(e protoreflect.EnumDescriptor, v any) (protoreflect.Value, *problem) {
	s, ok := v.(string)
	if !ok {
		return protoreflect.Value{}, mismatch(v, "s")
	}
	if value := e.Values().ByName(protoreflect.Name(prefix(e) + strings.ToUpper(s))); value != nil && s == strings.ToLower(s) {
		return protoreflect.ValueOfEnum(value.Number()), nil
	}
	if d.strict {
		return protoreflect.Value{}, wrong("%s is not one of its values", short(s))
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		n = -1
	}
	return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n)), nil
}

func octetsOf(v any) (protoreflect.Value, *problem) {
	switch b := v.(type) {
	case []byte:
		return protoreflect.ValueOfBytes(slices.Clone(b)), nil
	case string:
		raw, err := mihf.Unescape(b)
		if err != nil {
			return protoreflect.Value{}, wrong("%v", err)
		}
		return protoreflect.ValueOfBytes(raw), nil
	}
	return protoreflect.Value{}, mismatch(v, "ay")
}

// stringOf takes object paths for the strings that they are. It copies: godbus cuts strings
// from buffers of 4 KiB, which each would keep.
func stringOf(v any) (string, bool) {
	switch s := v.(type) {
	case string:
		return strings.Clone(s), true
	case dbus.ObjectPath:
		return strings.Clone(string(s)), true
	}
	return "", false
}

func mismatch(v any, want string) *problem {
	return wrong("is %s, want %s", signature(v), want)
}
