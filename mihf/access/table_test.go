package access_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
)

func user(uid uint32) mihf.Caller { return mihf.Caller{Front: "grpc", UID: mihf.Some(uid)} }

var (
	root     = user(0)
	daemon   = user(500)
	alice    = user(1000)
	bob      = user(1001)
	gateway  = user(900)
	member   = mihf.Caller{Front: "dbus", UID: mihf.Some(uint32(1002)), GID: mihf.Some(uint32(27))}
	bus      = mihf.Caller{Front: "grpc", Name: "bus-17"}
	fleet    = mihf.Caller{Front: "nats", Name: "fleet"}
	relay    = mihf.Caller{Front: "nats", Name: "relay"}
	posing   = mihf.Caller{Front: "nats", Name: "bus-17"} // a certificate's name
	rootly   = mihf.Caller{Front: "grpc", Name: "root"}   // has as_uid 0
	stranger = mihf.Caller{Front: "grpc", Name: "stranger"}
	nobody   = mihf.Caller{Front: "grpc"}
)

var table = access.New(500, access.Default,
	access.Grant{UIDs: []uint32{900}, Roles: access.Of(access.RegisterAny)},
	access.Grant{UIDs: []uint32{1001}, GIDs: []uint32{27}, Certificates: []string{"bus-17"}, NATSUsers: []string{"fleet"}, Roles: access.Of(access.Command), AsUID: mihf.Some(uint32(990))},
	access.Grant{UIDs: []uint32{990}, Roles: access.Of(access.Administer)},
	access.Grant{Certificates: []string{"bus-17"}, Roles: access.Of(access.Administer)},
	access.Grant{NATSUsers: []string{"relay"}, Roles: access.Of(access.RegisterAny)},
	access.Grant{Certificates: []string{"root"}, AsUID: mihf.Some(uint32(0))},
)

// "What is not granted is denied." "Root and the daemon's own uid have every role; they are
// known by the kernel's credentials alone, never by a name." "that uid's roles it does not
// get"
func TestRoles(t *testing.T) {
	for _, c := range []struct {
		who  mihf.Caller
		want access.Roles
	}{
		{root, access.All},
		{daemon, access.All},
		{alice, access.Default},
		{bob, access.Default | access.Of(access.Command)},
		{member, access.Default | access.Of(access.Command)},
		{gateway, access.Default | access.Of(access.RegisterAny)},
		{bus, access.Default | access.Of(access.Command, access.Administer)},
		{fleet, access.Default | access.Of(access.Command)},
		{relay, access.Default | access.Of(access.RegisterAny)},
		{posing, access.Default},
		{rootly, access.Default},
		{stranger, access.Default},
		{nobody, access.Default},
		{mihf.Caller{}, access.Default},
	} {
		if got := table.Roles(c.who); got != c.want {
			t.Errorf("%v: %v, want %v", c.who.Identity(), got, c.want)
		}
		for _, name := range access.RoleNames() {
			r, _ := access.ParseRole(name)
			if err := table.Require(c.who, r); (err == nil) != c.want.Has(r) || (err != nil && !errors.Is(err, mihf.ErrPermission)) {
				t.Errorf("%v, %v: %v", c.who.Identity(), r, err)
			}
		}
	}
	if closed := access.New(500, 0); closed.Roles(alice) != 0 || closed.Roles(root) != access.All {
		t.Error("without a default nobody but root and the daemon may do anything")
	}
	if open := access.New(500, access.Of(access.RegisterAny)); !open.May(alice, access.RegisterOwn) || open.May(alice, access.See) {
		t.Error("register-any implies register-own, and nothing else")
	}
}

// "A caller owns the flows of its uid. One that has a name instead owns those of the uid that
// its grant gives it, and none without"
func TestOwner(t *testing.T) {
	none := mihf.Opt[uint32]{}
	uid := mihf.Some[uint32]
	for _, c := range []struct {
		who   mihf.Caller
		owner mihf.Opt[uint32]
		want  uint32
		ok    bool
	}{
		{alice, none, 1000, true},
		{alice, uid(1000), 1000, true},
		{alice, uid(1001), 0, false},
		{alice, uid(0), 0, false},
		{gateway, none, 900, true},
		{gateway, uid(1001), 1001, true},
		{daemon, uid(1001), 1001, true},
		{root, uid(1001), 1001, true},
		{bus, none, 990, true},
		{bus, uid(990), 990, true},
		{bus, uid(1000), 0, false},
		{relay, none, 0, false},
		{relay, uid(1000), 1000, true},
		{rootly, none, 0, true},
		{rootly, uid(1000), 0, false},
		{posing, none, 0, false},
		{stranger, none, 0, false},
		{stranger, uid(1000), 0, false},
		{nobody, none, 0, false},
	} {
		got, err := table.Owner(c.who, &mihf.FlowSpec{Owner: c.owner})
		if (err == nil) != c.ok || (c.ok && got != c.want) || (err != nil && !errors.Is(err, mihf.ErrPermission)) {
			t.Errorf("%v for %v: %d, %v", c.who.Identity(), c.owner, got, err)
		}
	}
	blind := access.New(500, access.Of(access.See))
	if _, err := blind.Owner(alice, &mihf.FlowSpec{}); !errors.Is(err, mihf.ErrPermission) {
		t.Errorf("without the role: %v", err)
	}
}

func TestSees(t *testing.T) {
	for _, c := range []struct {
		who         mihf.Caller
		hers, other bool
	}{
		{alice, true, false},
		{bob, false, false},
		{gateway, true, true},
		{root, true, true},
		{relay, true, true},
		{bus, false, true},
		{stranger, false, false},
	} {
		if see := table.Sees(c.who); see(1000) != c.hers || see(990) != c.other {
			t.Errorf("%v", c.who.Identity())
		}
	}
}

// "A refusal is a [DeniedError]: it says whose role is missing and where it is granted."
func TestDenied(t *testing.T) {
	_, strange := table.Owner(stranger, &mihf.FlowSpec{})
	_, unknown := table.Owner(nobody, &mihf.FlowSpec{})
	for err, want := range map[error]string{
		table.Require(alice, access.Command):        `not permitted: uid 1000 lacks the role command: it needs a grant of [access] that has it in uids, with roles = ["command"]`,
		table.Require(fleet, access.Administer):     `not permitted: NATS user "fleet" lacks the role administer: it needs a grant of [access] that has it in nats_users, with roles = ["administer"]`,
		table.Require(stranger, access.RegisterAny): `not permitted: certificate "stranger" lacks the role register-any: it needs a grant of [access] that has it in certificates, with roles = ["register-any"]`,
		table.Require(nobody, access.Command):       `not permitted: a caller without uid or name lacks the role command: connect by the unix socket, or with a name that a grant of [access] has`,
		strange:                                     `not permitted: certificate "stranger" owns no flows: give it an as_uid in a grant of [access]`,
		unknown:                                     `not permitted: a caller without uid or name owns no flows: connect by the unix socket, or with a name that a grant of [access] gives an as_uid`,
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
		if d, ok := errors.AsType[*access.DeniedError](err); !ok || d.Role.String() == "unknown" {
			t.Errorf("%v is no DeniedError", err)
		}
	}
	ugly := mihf.Caller{Front: "nats", Name: strings.Repeat("\x1b\xff", 1000)}
	if err := table.Require(ugly, access.Command); len(err.Error()) > 1000 || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%q", err)
	}
}

func TestRoleNames(t *testing.T) {
	for i, name := range access.RoleNames() {
		if r, ok := access.ParseRole(name); !ok || int(r) != i || r.String() != name {
			t.Errorf("%s is %v", name, r)
		}
	}
	if _, ok := access.ParseRole("rule"); ok {
		t.Error("a role that does not exist")
	}
	if s := access.All.String(); s != "see, register-own, register-any, command, administer" {
		t.Error(s)
	}
	if access.Role(99).String() != "unknown" {
		t.Error("a name for what is no role")
	}
}

// isFor reports whether a grant names the caller.
func isFor(g *access.Grant, who mihf.Caller) bool {
	if uid, known := who.UID.Get(); known {
		gid, _ := who.GID.Get()
		return slices.Contains(g.UIDs, uid) || slices.Contains(g.GIDs, gid)
	}
	switch {
	case who.Name == "":
		return false
	case who.Front == "grpc":
		return slices.Contains(g.Certificates, who.Name)
	case who.Front == "nats":
		return slices.Contains(g.NATSUsers, who.Name)
	}
	return false
}

// A caller has what the default gives and what the grants that name it give, and no more.
func TestTableAgreesWithItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.Map(rapid.IntRange(0, int(access.All)), func(n int) access.Roles { return access.Roles(n) })
		ids := rapid.SliceOfN(rapid.Uint32Range(0, 3), 0, 2)
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2)
		base := roles.Draw(t, "base")
		grants := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) access.Grant {
			return access.Grant{
				UIDs: ids.Draw(t, "uids"), GIDs: ids.Draw(t, "gids"), Certificates: names.Draw(t, "certificates"), NATSUsers: names.Draw(t, "nats"),
				Roles: roles.Draw(t, "roles"),
			}
		}), 0, 4).Draw(t, "grants")
		who := mihf.Caller{Front: rapid.SampledFrom([]string{"grpc", "nats", "dbus"}).Draw(t, "front")}
		if rapid.Bool().Draw(t, "by uid") {
			who.UID, who.GID = mihf.Some(rapid.Uint32Range(1, 4).Draw(t, "uid")), mihf.Some(rapid.Uint32Range(0, 4).Draw(t, "gid"))
		} else {
			who.Name = rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "name")
		}
		want := base
		for _, g := range grants {
			if isFor(&g, who) {
				want |= g.Roles
			}
		}
		if want.Has(access.RegisterAny) {
			want |= access.Of(access.RegisterOwn)
		}
		if who.UID == mihf.Some(uint32(3)) {
			want = access.All
		}
		if got := access.New(3, base, grants...).Roles(who); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	})
}
