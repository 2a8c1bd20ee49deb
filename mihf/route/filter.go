package route

import (
	"fmt"
	"slices"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
)

// MaxFilterLinks bounds the links that one subscription names.
const MaxFilterLinks = 256

// Filter is what one subscription wants and may see. It is immutable and may be used by
// any goroutine.
type Filter struct {
	links []mihf.LinkID
	kinds mihf.KindSet
	hints bool
	only  bool             // hints, no events
	owner mihf.Opt[uint32] // hints of this owner's flows only; unknown: of all
}

// NewFilter checks a subscription. Hints are limited to the caller's own flows unless it
// may see any; who owns none and may see none is refused.
func NewFilter(req *mihf.SubscribeRequest, who mihf.Caller, table *access.Table) (*Filter, error) {
	if len(req.Links) > MaxFilterLinks {
		return nil, fmt.Errorf("%w: %d links in one subscription, at most %d", mihf.ErrLimit, len(req.Links), MaxFilterLinks)
	}
	for _, l := range req.Links {
		if !l.Valid() {
			return nil, fmt.Errorf("%w: link id %q", mihf.ErrInvalid, string(l))
		}
	}
	if req.Kinds>>mihf.NumKinds != 0 || req.Kinds.Has(0) {
		return nil, fmt.Errorf("%w: unknown kinds of event", mihf.ErrInvalid)
	}
	if req.HintsOnly && req.Kinds != 0 {
		return nil, fmt.Errorf("%w: kinds of event in a subscription to hints only", mihf.ErrInvalid)
	}
	f := &Filter{links: slices.Clone(req.Links), kinds: req.Kinds, hints: req.WantsHints(), only: req.HintsOnly}
	if f.hints && !table.May(who, access.RegisterAny) {
		uid, err := table.Self(who)
		if err != nil {
			return nil, fmt.Errorf("hints are shown to their flow's owner: %w", err)
		}
		f.owner = mihf.Some(uid)
	}
	return f, nil
}

// Kind reports whether events of the kind may pass.
func (f *Filter) Kind(k mihf.Kind) bool { return !f.only && (f.kinds == 0 || f.kinds.Has(k)) }

// Whole returns the kinds whose events all pass.
func (f *Filter) Whole() mihf.KindSet {
	switch {
	case len(f.links) > 0, f.only:
		return 0
	case f.kinds == 0:
		return ^mihf.KindSet(0)
	}
	return f.kinds
}

// Hints reports whether hints may pass.
func (f *Filter) Hints() bool { return f.hints }

// Event reports whether the event passes. An event without a link passes any choice of
// links.
func (f *Filter) Event(e *mihf.Event) bool {
	return f.Kind(e.Kind) && (len(f.links) == 0 || e.Link == "" || slices.Contains(f.links, e.Link))
}

// Hint reports whether the hint passes.
func (f *Filter) Hint(h *mihf.Hint) bool {
	if !f.hints || (len(f.links) > 0 && !slices.Contains(f.links, h.Link)) {
		return false
	}
	owner, only := f.owner.Get()
	return !only || owner == h.Owner
}
