package variant

import (
	"fmt"
	"math"
	"reflect"

	"github.com/godbus/dbus/v5"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// number reads a value of a numeric kind.
func number(kind protoreflect.Kind, v any) (protoreflect.Value, *problem) {
	switch kind {
	case protoreflect.FloatKind:
		f, p := float(v)
		return protoreflect.ValueOfFloat32(float32(f)), p
	case protoreflect.DoubleKind:
		f, p := float(v)
		return protoreflect.ValueOfFloat64(f), p
	case protoreflect.Uint32Kind:
		n, p := unsigned(v, math.MaxUint32)
		return protoreflect.ValueOfUint32(uint32(n)), p //nolint:gosec // within the bound
	case protoreflect.Uint64Kind:
		n, p := unsigned(v, math.MaxUint64)
		return protoreflect.ValueOfUint64(n), p
	case protoreflect.Int32Kind:
		n, p := signed(v, math.MinInt32, math.MaxInt32)
		return protoreflect.ValueOfInt32(int32(n)), p //nolint:gosec // within the bounds
	case protoreflect.Int64Kind:
		n, p := signed(v, math.MinInt64, math.MaxInt64)
		return protoreflect.ValueOfInt64(n), p
	default:
		return protoreflect.Value{}, wrong("is of a kind that D-Bus messages do not have: %v", kind)
	}
}

// whole returns an integer of any D-Bus type as its sign and size.
func whole(v any) (negative bool, size uint64, ok bool) {
	switch n := v.(type) {
	case byte:
		return false, uint64(n), true
	case uint16:
		return false, uint64(n), true
	case uint32:
		return false, uint64(n), true
	case uint64:
		return false, n, true
	case int16:
		return split(int64(n))
	case int32:
		return split(int64(n))
	case int64:
		return split(n)
	}
	return false, 0, false
}

func split(n int64) (negative bool, size uint64, ok bool) {
	if n < 0 {
		return true, -uint64(n), true //nolint:gosec // two's complement
	}
	return false, uint64(n), true
}

func unsigned(v any, high uint64) (uint64, *problem) {
	negative, size, ok := whole(v)
	switch {
	case !ok:
		return 0, mismatch(v, "a whole number")
	case negative || size > high:
		return 0, wrong("%v is outside 0 to %d", v, high)
	}
	return size, nil
}

func signed(v any, low, high int64) (int64, *problem) {
	negative, size, ok := whole(v)
	switch {
	case !ok:
		return 0, mismatch(v, "a whole number")
	case negative && size > -uint64(low), !negative && size > uint64(high): //nolint:gosec // two's complement; high is positive
		return 0, wrong("%v is outside %d to %d", v, low, high)
	case negative:
		return -int64(size), nil //nolint:gosec // two's complement
	}
	return int64(size), nil //nolint:gosec // within the bounds
}

func float(v any) (float64, *problem) {
	if f, ok := v.(float64); ok {
		return f, nil
	}
	negative, size, ok := whole(v)
	if !ok {
		return 0, mismatch(v, "a number")
	}
	if negative {
		return -float64(size), nil
	}
	return float64(size), nil
}

// elements returns the items of a list of any D-Bus type.
func elements(v any) ([]any, bool) {
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice {
		return nil, false
	}
	out := make([]any, r.Len())
	for i := range out {
		out[i] = r.Index(i).Interface()
	}
	return out, true
}

// signature names the type of a value for people.
func signature(v any) (s string) {
	if v == nil {
		return "nothing"
	}
	defer func() {
		if recover() != nil { // nothing that a bus delivers
			s = fmt.Sprintf("%T", v)
		}
	}()
	return dbus.SignatureOf(v).String()
}
