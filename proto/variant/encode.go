package variant

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/godbus/dbus/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"mihf.dev/mihf"
)

// Dict is a D-Bus dictionary a{sv}.
type Dict = map[string]dbus.Variant

// Encode returns a message as a dictionary; of nil, an empty one.
func Encode(m proto.Message) Dict { return encode(m.ProtoReflect()) }

// EncodeList returns messages as an aa{sv}.
func EncodeList[M proto.Message](ms []M) []Dict {
	out := make([]Dict, len(ms))
	for i, m := range ms {
		out[i] = Encode(m)
	}
	return out
}

func encode(m protoreflect.Message) Dict {
	out := Dict{}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.IsList() {
			out[key(fd)] = dbus.MakeVariant(list(fd, v.List()))
			return true
		}
		out[key(fd)] = dbus.MakeVariant(single(fd, v))
		if octets(fd) {
			out[textKey(fd)] = dbus.MakeVariant(mihf.Escape(v.Bytes()))
		}
		return true
	})
	return out
}

// single returns one value as the D-Bus library takes it.
func single(fd protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch fd.Kind() {
	case protoreflect.EnumKind:
		return enumName(fd.Enum(), v.Enum())
	case protoreflect.StringKind:
		return sendable(v.String())
	case protoreflect.MessageKind:
		switch sub := v.Message().Interface().(type) {
		case *durationpb.Duration:
			return int64(sub.AsDuration())
		case *timestamppb.Timestamp:
			return unixNanos(sub.AsTime())
		}
		return encode(v.Message())
	case protoreflect.FloatKind:
		return v.Float()
	default:
		return v.Interface() // bool, int32, uint32, int64, uint64, float64, []byte
	}
}

// list returns a list as the D-Bus library takes it.
func list(fd protoreflect.FieldDescriptor, l protoreflect.List) any {
	switch fd.Kind() {
	case protoreflect.EnumKind, protoreflect.StringKind:
		return collect[string](fd, l)
	case protoreflect.MessageKind:
		switch fd.Message().FullName() {
		case durationName, timestampName:
			return collect[int64](fd, l)
		}
		return collect[Dict](fd, l)
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return collect[float64](fd, l)
	case protoreflect.BoolKind:
		return collect[bool](fd, l)
	case protoreflect.Int32Kind:
		return collect[int32](fd, l)
	case protoreflect.Uint32Kind:
		return collect[uint32](fd, l)
	case protoreflect.Uint64Kind:
		return collect[uint64](fd, l)
	case protoreflect.BytesKind:
		return collect[[]byte](fd, l)
	default:
		return collect[int64](fd, l)
	}
}

func collect[T any](fd protoreflect.FieldDescriptor, l protoreflect.List) []T {
	out := make([]T, l.Len())
	for i := range out {
		out[i] = single(fd, l.Get(i)).(T)
	}
	return out
}

func enumName(e protoreflect.EnumDescriptor, n protoreflect.EnumNumber) string {
	v := e.Values().ByNumber(n)
	if v == nil {
		return strconv.Itoa(int(n))
	}
	return strings.ToLower(strings.TrimPrefix(string(v.Name()), prefix(e)))
}

// sendable returns s as D-Bus can carry it.
func sendable(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return mihf.EscapeString(s)
}

// unixNanos returns a time as nanoseconds since 1970, cut to what these can tell.
func unixNanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	case s <= math.MinInt64/int64(time.Second):
		return math.MinInt64
	default:
		return t.UnixNano()
	}
}
