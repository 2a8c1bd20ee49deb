package rtnl

import (
	"testing"

	"mihf.dev/mihf"
)

// "a link has its id there when it has been emitted, and none any more before its end is"
func TestDirectory(t *testing.T) {
	s := New(Options{})
	const id = mihf.LinkID("wifi-00000001")
	during := func(want bool) func(*mihf.Observation) {
		return func(o *mihf.Observation) {
			if got, ok := s.Link(7); ok != want || (ok && got != id) {
				t.Errorf("while %v is emitted: %q %v, want %v", o.Kind, got, ok, want)
			}
		}
	}
	link := &mihf.Observation{Kind: mihf.ObsLink, Link: id, Facts: &mihf.LinkFacts{Index: 7}}
	if _, ok := s.Link(7); ok {
		t.Error("known before anything was read")
	}
	s.links.clear()
	s.links.around(during(false))(link)
	s.links.around(during(true))(link)
	s.links.around(during(false))(&mihf.Observation{Kind: mihf.ObsLinkGone, Link: id})
	if _, ok := s.Link(7); ok {
		t.Error("known after it is gone")
	}
}
