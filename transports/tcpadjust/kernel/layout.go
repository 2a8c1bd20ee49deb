package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/btf"
)

// layout finds where the running kernel keeps what.
type layout struct {
	spec *btf.Spec
	errs []error
}

// at returns the offset of a member, through members without a name. What is not there is
// remembered, and the offset 0.
func (l *layout) at(structure string, path ...string) int16 {
	var s *btf.Struct
	if err := l.spec.TypeByName(structure, &s); err != nil {
		l.errs = append(l.errs, fmt.Errorf("struct %s: %w", structure, err))
		return 0
	}
	var t btf.Type = s
	offset := uint32(0)
	for _, name := range path {
		m, o, ok := member(t, name)
		if !ok {
			l.errs = append(l.errs, fmt.Errorf("struct %s has no %s", structure, name))
			return 0
		}
		offset += o
		t = m.Type
	}
	return int16(offset) //nolint:gosec // a struct's size
}

func (l *layout) err() error { return errors.Join(l.errs...) }

func member(t btf.Type, name string) (btf.Member, uint32, bool) {
	var members []btf.Member
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Struct:
		members = t.Members
	case *btf.Union:
		members = t.Members
	}
	for _, m := range members {
		if m.Name == name {
			return m, m.Offset.Bytes(), true
		}
		if m.Name != "" {
			continue
		}
		if inner, o, ok := member(m.Type, name); ok {
			return inner, o + m.Offset.Bytes(), true
		}
	}
	return btf.Member{}, 0, false
}
