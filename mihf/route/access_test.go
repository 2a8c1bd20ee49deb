package route_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/route"
)

var (
	root     = mihf.Caller{UID: mihf.Some(uint32(0))}
	daemon   = mihf.Caller{UID: mihf.Some(uint32(500))}
	alice    = mihf.Caller{UID: mihf.Some(uint32(1000))}
	bob      = mihf.Caller{UID: mihf.Some(uint32(1001))}
	gateway  = mihf.Caller{UID: mihf.Some(uint32(900))}
	operator = mihf.Caller{Admin: true}
	stranger = mihf.Caller{Front: "grpc"}
)

var access = route.Access{Self: 500, GrantUIDs: []uint32{900}, CommandUIDs: []uint32{1001}}

func TestOwner(t *testing.T) {
	for _, c := range []struct {
		who   mihf.Caller
		owner mihf.Opt[uint32]
		want  uint32
		ok    bool
	}{
		{alice, mihf.Opt[uint32]{}, 1000, true},
		{alice, mihf.Some(uint32(1000)), 1000, true},
		{alice, mihf.Some(uint32(1001)), 0, false},
		{alice, mihf.Some(uint32(0)), 0, false},
		{gateway, mihf.Some(uint32(1001)), 1001, true},
		{daemon, mihf.Some(uint32(1001)), 1001, true},
		{root, mihf.Some(uint32(1001)), 1001, true},
		{operator, mihf.Opt[uint32]{}, 500, true},
		{operator, mihf.Some(uint32(1001)), 1001, true},
		{stranger, mihf.Opt[uint32]{}, 0, false},
		{stranger, mihf.Some(uint32(1000)), 0, false},
	} {
		got, err := access.Owner(c.who, &mihf.FlowSpec{Owner: c.owner})
		if (err == nil) != c.ok || got != c.want || (err != nil && !errors.Is(err, mihf.ErrPermission)) {
			t.Errorf("%+v for %v: %d, %v", c.who, c.owner, got, err)
		}
	}
}

func TestCommands(t *testing.T) {
	open := route.Access{Self: 500}
	for _, c := range []struct {
		who                       mihf.Caller
		restricted, open, manages bool
	}{
		{root, true, true, true},
		{daemon, true, true, true},
		{operator, true, true, true},
		{alice, false, true, false},
		{bob, true, true, false},
		{gateway, false, true, false},
		{stranger, false, true, false},
	} {
		if (access.Command(c.who) == nil) != c.restricted || (open.Command(c.who) == nil) != c.open || (access.Administer(c.who) == nil) != c.manages {
			t.Errorf("%+v", c.who)
		}
	}
}

// A caller without a uid is not taken for root in what it is told.
func TestStranger(t *testing.T) {
	_, owner := access.Owner(stranger, &mihf.FlowSpec{})
	_, follows := route.NewFilter(&mihf.SubscribeRequest{Hints: true}, stranger, &access)
	for _, err := range []error{owner, follows, access.Command(stranger)} {
		if err == nil || strings.Contains(err.Error(), "uid 0") || !strings.Contains(err.Error(), "use the unix socket, or a certificate that [grpc] admin_names has") {
			t.Error(err)
		}
	}
}

func filter(t *testing.T, who mihf.Caller, req mihf.SubscribeRequest) *route.Filter {
	t.Helper()
	f, err := route.NewFilter(&req, who, &access)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFilterEvents(t *testing.T) {
	all := filter(t, alice, mihf.SubscribeRequest{})
	some := filter(t, alice, mihf.SubscribeRequest{Links: []mihf.LinkID{wlan}, Kinds: mihf.Kinds(mihf.LinkUp, mihf.Resync)})
	for _, c := range []struct {
		e    mihf.Event
		want bool
	}{
		{mihf.Event{Kind: mihf.LinkUp, Link: wlan}, true},
		{mihf.Event{Kind: mihf.LinkUp, Link: wwan}, false},
		{mihf.Event{Kind: mihf.LinkDown, Link: wlan}, false},
		{mihf.Event{Kind: mihf.Resync}, true}, // of no link
	} {
		if !all.Event(&c.e) || some.Event(&c.e) != c.want || some.Kind(c.e.Kind) != (c.e.Kind != mihf.LinkDown) {
			t.Errorf("%+v", c.e)
		}
	}
}

// Hints are shown to their flow's owner, unless the caller may see any.
func TestFilterHints(t *testing.T) {
	for _, c := range []struct {
		who         mihf.Caller
		own, others bool
	}{{alice, true, false}, {gateway, true, true}, {root, true, true}, {operator, true, true}} {
		f := filter(t, c.who, mihf.SubscribeRequest{Hints: true, Links: []mihf.LinkID{wlan}})
		own, other := mihf.Hint{Link: wlan, Owner: 1000}, mihf.Hint{Link: wlan, Owner: 1001}
		if f.Hint(&own) != c.own || f.Hint(&other) != c.others || f.Hint(&mihf.Hint{Link: wwan, Owner: 1000}) {
			t.Errorf("%+v", c.who)
		}
		if filter(t, c.who, mihf.SubscribeRequest{}).Hint(&own) {
			t.Error("hints that were not asked for")
		}
	}
}

func TestFilterRefuses(t *testing.T) {
	var many []mihf.LinkID
	for i := range route.MaxFilterLinks + 1 {
		many = append(many, mihf.LinkID(fmt.Sprintf("wifi-%08x", i)))
	}
	for _, c := range []struct {
		who  mihf.Caller
		req  mihf.SubscribeRequest
		want error
	}{
		{alice, mihf.SubscribeRequest{Links: many}, mihf.ErrLimit},
		{alice, mihf.SubscribeRequest{Links: []mihf.LinkID{"*"}}, mihf.ErrInvalid},
		{alice, mihf.SubscribeRequest{Kinds: 1}, mihf.ErrInvalid},
		{alice, mihf.SubscribeRequest{Kinds: 1 << mihf.NumKinds}, mihf.ErrInvalid},
		{stranger, mihf.SubscribeRequest{Hints: true}, mihf.ErrPermission},
	} {
		if _, err := route.NewFilter(&c.req, c.who, &access); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c.req, err)
		}
	}
}

// "Filter is immutable": what the caller does with its request later changes nothing.
func TestFilterIsImmutable(t *testing.T) {
	links := []mihf.LinkID{wlan}
	f := filter(t, alice, mihf.SubscribeRequest{Links: links})
	links[0] = wwan
	if !f.Event(&mihf.Event{Kind: mihf.LinkUp, Link: wlan}) {
		t.Error("changed from outside")
	}
}
