package variant

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Endings of keys.
const (
	spanEnding   = "_ns"
	momentEnding = "_unix_ns"
	textEnding   = "_text"
)

// Messages that are numbers here.
const (
	durationName  = protoreflect.FullName("google.protobuf.Duration")
	timestampName = protoreflect.FullName("google.protobuf.Timestamp")
)

// key returns a field's key.
func key(fd protoreflect.FieldDescriptor) string {
	if m := fd.Message(); m != nil {
		switch m.FullName() {
		case durationName:
			return string(fd.Name()) + spanEnding
		case timestampName:
			return string(fd.Name()) + momentEnding
		}
	}
	return string(fd.Name())
}

// textKey returns the key of the string beside a field of octets.
func textKey(fd protoreflect.FieldDescriptor) string { return string(fd.Name()) + textEnding }

// octets reports whether the field is one value of octets.
func octets(fd protoreflect.FieldDescriptor) bool {
	return fd.Kind() == protoreflect.BytesKind && !fd.IsList()
}

// prefix returns what all values of an enumeration begin with.
func prefix(e protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(e.Values().ByNumber(0).Name()), "UNSPECIFIED")
}
