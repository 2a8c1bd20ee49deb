package route_test

import (
	"errors"
	"fmt"
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/route"
)

var (
	root     = mihf.Caller{UID: mihf.Some(uint32(0))}
	alice    = mihf.Caller{UID: mihf.Some(uint32(1000))}
	gateway  = mihf.Caller{UID: mihf.Some(uint32(900))}
	sidecar  = mihf.Caller{Front: "grpc", Name: "sidecar"} // alice's
	stranger = mihf.Caller{Front: "grpc", Name: "stranger"}
)

var table = access.New(500, access.Default,
	access.Grant{UIDs: []uint32{900}, Roles: access.Of(access.RegisterAny)},
	access.Grant{Certificates: []string{"sidecar"}, AsUID: mihf.Some(uint32(1000))})

func filter(t *testing.T, who mihf.Caller, req mihf.SubscribeRequest) *route.Filter {
	t.Helper()
	f, err := route.NewFilter(&req, who, table)
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
	}{{alice, true, false}, {gateway, true, true}, {root, true, true}, {sidecar, true, false}} {
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
		if _, err := route.NewFilter(&c.req, c.who, table); !errors.Is(err, c.want) {
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
