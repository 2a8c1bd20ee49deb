package conv

import (
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

const marker, hidden = "02:00:00:00:01:02", "poa-0123456789abcdef"

// mark makes every id of a point of attachment in v the marker.
func mark(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			mark(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			mark(field)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			mark(v.Index(i))
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[mihf.PoA]() {
			v.SetString(marker)
		}
	default: // holds no strings
	}
}

// texts calls f with every string and all octets in a message, and the name of their field.
func texts(m protoreflect.Message, f func(field protoreflect.FullName, s string)) {
	m.Range(func(d protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		one := func(v protoreflect.Value) {
			switch d.Kind() {
			case protoreflect.MessageKind:
				texts(v.Message(), f)
			case protoreflect.StringKind:
				f(d.FullName(), v.String())
			case protoreflect.BytesKind:
				f(d.FullName(), string(v.Bytes()))
			default: // a number
			}
		}
		if !d.IsList() {
			one(v)
			return true
		}
		for i := range v.List().Len() {
			one(v.List().Get(i))
		}
		return true
	})
}

// No message has an id of a point of attachment past the hook, and every field of the protocol
// that holds one goes through it.
func TestPoAHook(t *testing.T) {
	plain := Encoder{Now: now, Node: "n"}
	hides := plain
	hides.PoA = func(p mihf.PoA) mihf.PoA {
		if p != marker {
			t.Errorf("the hook gets %q", p)
		}
		return hidden
	}
	seen := map[protoreflect.FullName]bool{}
	check := func(name string, draw func(gen) (value any, encode func(Encoder) proto.Message)) {
		t.Run(name, rapid.MakeCheck(func(rt *rapid.T) {
			value, encode := draw(gen{rt})
			mark(reflect.ValueOf(value))
			there, hiddenThere := map[protoreflect.FullName]int{}, map[protoreflect.FullName]int{}
			texts(encode(plain).ProtoReflect(), func(field protoreflect.FullName, s string) {
				if strings.Contains(s, marker) {
					there[field]++
					seen[field] = true
				}
			})
			texts(encode(hides).ProtoReflect(), func(field protoreflect.FullName, s string) {
				if strings.Contains(s, marker) {
					rt.Errorf("%s is %q", field, s)
				}
				if s == hidden {
					hiddenThere[field]++
				}
			})
			if !reflect.DeepEqual(there, hiddenThere) {
				rt.Errorf("plain %v, hidden %v", there, hiddenThere)
			}
		}))
	}
	for k := mihf.Kind(1); int(k) < mihf.NumKinds; k++ {
		check("event/"+k.String(), func(g gen) (any, func(Encoder) proto.Message) {
			v := g.event(k)
			return &v, func(e Encoder) proto.Message { return e.Event(&v) }
		})
	}
	for k := mihf.HintFreeze; k <= mihf.HintCharacteristics; k++ {
		check("hint/"+k.String(), func(g gen) (any, func(Encoder) proto.Message) {
			v := g.hint(k)
			return &v, func(e Encoder) proto.Message { return e.Hint(&v) }
		})
	}
	for k := mihf.ObsLink; k <= mihf.ObsTruth; k++ {
		check("observation/"+k.String(), func(g gen) (any, func(Encoder) proto.Message) {
			v := g.observation(k)
			return &v, func(e Encoder) proto.Message { return e.Observation(&v) }
		})
	}
	check("snapshot", func(g gen) (any, func(Encoder) proto.Message) {
		v := g.snapshot()
		return v, func(e Encoder) proto.Message { return e.Snapshot(v) }
	})
	check("link_status", func(g gen) (any, func(Encoder) proto.Message) {
		v := g.linkStatus()
		return &v, func(e Encoder) proto.Message { return e.LinkStatus(&v) }
	})
	check("information", func(g gen) (any, func(Encoder) proto.Message) {
		v := g.information()
		return v, func(e Encoder) proto.Message { return e.Information(v) }
	})
	check("explanation", func(g gen) (any, func(Encoder) proto.Message) {
		v := g.explanation()
		return v, func(e Encoder) proto.Message { return e.Explanation(v) }
	})
	for field := range poaFields() {
		if !seen[field] {
			t.Errorf("no message had %s: is it encoded through the hook?", field)
		}
	}
}

// poaFields are the fields of what a broker sends that are named as ids of points of attachment.
func poaFields() map[protoreflect.FullName]bool {
	found := map[protoreflect.FullName]bool{}
	visited := map[protoreflect.FullName]bool{}
	var visit func(protoreflect.MessageDescriptor)
	visit = func(m protoreflect.MessageDescriptor) {
		if visited[m.FullName()] {
			return
		}
		visited[m.FullName()] = true
		for i := range m.Fields().Len() {
			d := m.Fields().Get(i)
			name := string(d.Name())
			if d.Kind() == protoreflect.MessageKind {
				visit(d.Message())
			} else if strings.HasSuffix(name, "poa") || strings.HasSuffix(name, "poas") {
				found[d.FullName()] = true
			}
		}
	}
	for _, file := range []protoreflect.FileDescriptor{
		mihv1.File_mih_v1_admin_service_proto, mihv1.File_mih_v1_event_service_proto, mihv1.File_mih_v1_command_service_proto,
		mihv1.File_mih_v1_information_service_proto, mihv1.File_mih_v1_transport_service_proto,
	} {
		for i := range file.Services().Len() {
			for j := range file.Services().Get(i).Methods().Len() {
				visit(file.Services().Get(i).Methods().Get(j).Output())
			}
		}
	}
	return found
}
