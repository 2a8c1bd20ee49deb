package conv

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// Every enumeration has the names of the vocabulary, in its order.
func TestEnumerationsMatchVocabulary(t *testing.T) {
	for _, tc := range []struct {
		enum  protoreflect.Enum
		name  func(int) string // of the value that the protocol numbers from 1
		count int
	}{
		{mihv1.EventKind(0), func(i int) string { return mihf.Kind(i).String() }, mihf.NumKinds - 1},
		{mihv1.HintKind(0), func(i int) string { return mihf.HintKind(i).String() }, int(mihf.HintCharacteristics)},
		{mihv1.Source(0), func(i int) string { return mihf.Source(i).String() }, int(mihf.SourcePHY)},
		{mihv1.Parameter(0), func(i int) string { return mihf.Parameter(i - 1).String() }, mihf.NumParameters},
		{mihv1.Cause(0), func(i int) string { return mihf.Cause(i - 1).String() }, 2},
		{mihv1.Outcome(0), func(i int) string { return mihf.Outcome(i - 1).String() }, 5},
		{mihv1.OperState(0), func(i int) string { return mihf.OperState(i - 1).String() }, 7},
		{mihv1.AssociationState(0), func(i int) string { return mihf.AssociationState(i - 1).String() }, 5},
		{mihv1.DownReason(0), func(i int) string { return mihf.DownReason(i - 1).String() }, int(mihf.DownUnknown) + 1},
		{mihv1.Condition(0), func(i int) string { return mihf.Condition(i - 1).String() }, 6},
		{mihv1.Continuity(0), func(i int) string { return mihf.Continuity(i - 1).String() }, 3},
		{mihv1.Direction(0), func(i int) string { return mihf.Direction(i - 1).String() }, 3},
		{mihv1.AckResult(0), func(i int) string { return mihf.AckResult(i - 1).String() }, 3},
		{mihv1.FreezeReason(0), func(i int) string { return mihf.FreezeReason(i - 1).String() }, 3},
		{mihv1.UnfreezeCause(0), func(i int) string { return mihf.UnfreezeCause(i - 1).String() }, 7},
		{mihv1.AbandonReason(0), func(i int) string { return mihf.AbandonReason(i - 1).String() }, 3},
		{mihv1.ThresholdDirection(0), func(i int) string { return mihf.ThresholdDirection(i - 1).String() }, 2},
		{mihv1.ThresholdAction(0), func(i int) string { return mihf.ThresholdAction(i - 1).String() }, 3},
	} {
		d := tc.enum.Descriptor()
		if got := d.Values().Len() - 1; got != tc.count {
			t.Errorf("%s has %d values, the vocabulary %d", d.Name(), got, tc.count)
		}
		prefix := strings.TrimSuffix(string(d.Values().ByNumber(0).Name()), "UNSPECIFIED")
		for i := 1; i <= tc.count; i++ {
			want := prefix + strings.ToUpper(strings.ReplaceAll(tc.name(i), "-", "_"))
			if v := d.Values().ByNumber(protoreflect.EnumNumber(i)); v == nil || string(v.Name()) != want {
				t.Errorf("%s %d: %v, want %s", d.Name(), i, v, want)
			}
		}
		if name := tc.name(tc.count + 1); name != "unknown" {
			t.Errorf("%s: the vocabulary has %q, the protocol does not", d.Name(), name)
		}
	}
}

// The kind of an event in the oneof has the name that the vocabulary gives it.
func TestOneofNamesMatchVocabulary(t *testing.T) {
	fields := (&mihv1.Event{}).ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	if fields.Len() != mihf.NumKinds-1 {
		t.Errorf("%d kinds in the oneof, %d in the vocabulary", fields.Len(), mihf.NumKinds-1)
	}
	for i := range fields.Len() {
		if want := mihf.Kind(i + 1).String(); string(fields.Get(i).Name()) != want {
			t.Errorf("kind %d is %s, want %s", i+1, fields.Get(i).Name(), want)
		}
	}
}
