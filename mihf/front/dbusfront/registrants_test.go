package dbusfront

import (
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/proto/dbusapi"
)

// Who registered a flow is known until its object is gone, or the attachment; flows that come
// and go between two readings of the objects are forgotten too.
func TestRegistrants(t *testing.T) {
	var r registrants
	a, b := &attached{p: &peer{name: ":1.1"}}, &attached{p: &peer{name: ":1.2"}}
	want := func(id mihf.FlowID, name string) {
		t.Helper()
		if got := r.name(id); got != name {
			t.Errorf("flow %s: %q, want %q", id, got, name)
		}
	}
	want("F", "")
	r.set("F", a)
	r.set("brief", a)
	r.look()
	r.set("late", b) // after the reading began: it may not be in it
	found := objects{dbusapi.FlowPath("F"): {}}
	r.prune(found)
	want("F", ":1.1")
	want("brief", "")
	want("late", ":1.2")
	r.look()
	r.prune(found)
	want("late", "")
	r.set("G", b)
	r.drop(a)
	want("F", "")
	want("G", ":1.2")
	if len(r.flows) != 1 {
		t.Errorf("%d are kept, want 1", len(r.flows))
	}
}
