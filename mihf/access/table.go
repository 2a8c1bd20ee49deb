package access

import "mihf.dev/mihf"

// Grant gives roles to everyone whom it names in any of its lists.
type Grant struct {
	UIDs         []uint32
	GIDs         []uint32 // primary groups of the peers' credentials
	Certificates []string // common names
	NATSUsers    []string
	Roles        Roles
	// AsUID is whose flows those named by Certificates and NATSUsers own.
	AsUID mihf.Opt[uint32]
}

// Table is who has which roles.
type Table struct {
	self         uint32
	base         Roles
	uids, gids   map[uint32]Roles
	certificates map[string]holder
	natsUsers    map[string]holder
}

// holder is what a name has.
type holder struct {
	roles Roles
	as    mihf.Opt[uint32]
}

// New returns the table of a daemon whose own uid is self: base is what everyone has.
func New(self uint32, base Roles, grants ...Grant) *Table {
	t := &Table{
		self: self, base: base.whole(), uids: map[uint32]Roles{}, gids: map[uint32]Roles{},
		certificates: map[string]holder{}, natsUsers: map[string]holder{},
	}
	for i := range grants {
		g := &grants[i]
		roles := g.Roles.whole()
		for _, uid := range g.UIDs {
			t.uids[uid] |= roles
		}
		for _, gid := range g.GIDs {
			t.gids[gid] |= roles
		}
		add(t.certificates, g.Certificates, holder{roles, g.AsUID})
		add(t.natsUsers, g.NATSUsers, holder{roles, g.AsUID})
	}
	return t
}

func add(to map[string]holder, names []string, h holder) {
	for _, name := range names {
		had := to[name]
		had.roles |= h.roles
		if !had.as.Known() {
			had.as = h.as
		}
		to[name] = had
	}
}

// named returns what the caller's name has; of one with a uid the name is not asked for.
func (t *Table) named(who mihf.Caller) holder {
	id := who.Identity()
	if name, ok := id.Certificate(); ok {
		return t.certificates[name]
	}
	if name, ok := id.NATSUser(); ok {
		return t.natsUsers[name]
	}
	return holder{}
}

// Roles returns what the caller may do.
func (t *Table) Roles(who mihf.Caller) Roles {
	roles := t.base | t.named(who).roles
	if gid, known := who.GID.Get(); known {
		roles |= t.gids[gid]
	}
	if uid, known := who.UID.Get(); known {
		if uid == 0 || uid == t.self {
			return All
		}
		roles |= t.uids[uid]
	}
	return roles
}

// May reports whether the caller has the role.
func (t *Table) May(who mihf.Caller, role Role) bool { return t.Roles(who).Has(role) }

// Require fails with a [DeniedError] unless the caller has the role.
func (t *Table) Require(who mihf.Caller, role Role) error {
	if t.May(who, role) {
		return nil
	}
	return &DeniedError{Who: who.Identity(), Role: role}
}

// UID returns whose flows the caller owns; unknown: nobody's.
func (t *Table) UID(who mihf.Caller) mihf.Opt[uint32] {
	if who.UID.Known() {
		return who.UID
	}
	return t.named(who).as
}

// Self returns whose flows the caller owns. It fails with a [DeniedError] where those are
// nobody's.
func (t *Table) Self(who mihf.Caller) (uint32, error) {
	uid, known := t.UID(who).Get()
	if !known {
		return 0, &DeniedError{Who: who.Identity(), Role: RegisterOwn, nobody: true}
	}
	return uid, nil
}

// Owner returns the uid that a flow registered by the caller belongs to. It fails with a
// [DeniedError] if the caller may not register for that owner.
func (t *Table) Owner(who mihf.Caller, spec *mihf.FlowSpec) (uint32, error) {
	owner, named := spec.Owner.Get()
	if named && t.UID(who) != spec.Owner {
		return owner, t.Require(who, RegisterAny)
	}
	if err := t.Require(who, RegisterOwn); err != nil {
		return 0, err
	}
	return t.Self(who)
}

// Sees returns whether the caller may see the flows of an owner.
func (t *Table) Sees(who mihf.Caller) func(owner uint32) bool {
	if t.May(who, RegisterAny) {
		return func(uint32) bool { return true }
	}
	uid, known := t.UID(who).Get()
	return func(owner uint32) bool { return known && uid == owner }
}
