package route

import (
	"fmt"
	"slices"

	"mihf.dev/mihf"
)

// Access says who may do what. Who may connect at all is decided by the front (the
// socket's mode and group); root and the daemon's own uid may do everything.
type Access struct {
	Self        uint32   // the daemon's uid
	GrantUIDs   []uint32 // may register, see and update the flows of any owner
	CommandUIDs []uint32 // may give commands; empty: everyone who may connect
}

// asWhom says what a caller without a uid can do: only TCP has such.
const asWhom = "use the unix socket, or a certificate that [grpc] admin_names has"

// Admin reports whether the caller may do everything.
func (a *Access) Admin(who mihf.Caller) bool {
	uid, known := who.UID.Get()
	return who.Admin || (known && (uid == 0 || uid == a.Self))
}

// Any reports whether the caller may act for flows of other owners.
func (a *Access) Any(who mihf.Caller) bool {
	uid, known := who.UID.Get()
	return a.Admin(who) || (known && slices.Contains(a.GrantUIDs, uid))
}

// Owner returns the uid that a flow registered by the caller belongs to. It fails with
// mihf.ErrPermission if the caller may not register for that owner.
func (a *Access) Owner(who mihf.Caller, spec *mihf.FlowSpec) (uint32, error) {
	uid, known := who.UID.Get()
	owner, named := spec.Owner.Get()
	switch {
	case !known && !who.Admin:
		return 0, fmt.Errorf("%w: the caller's uid is not known, so it owns no flow; %s", mihf.ErrPermission, asWhom)
	case !named && known:
		return uid, nil
	case !named:
		return a.Self, nil
	case known && owner == uid, a.Any(who):
		return owner, nil
	}
	return 0, fmt.Errorf("%w: uid %d may register flows of uid %d only; ask for a grant in [access] register_any_uids", mihf.ErrPermission, uid, uid)
}

// Command fails with mihf.ErrPermission if the caller may not give commands.
func (a *Access) Command(who mihf.Caller) error {
	uid, known := who.UID.Get()
	if a.Admin(who) || len(a.CommandUIDs) == 0 || (known && slices.Contains(a.CommandUIDs, uid)) {
		return nil
	}
	if !known {
		return fmt.Errorf("%w: the caller's uid is not known, so it may not give commands; %s", mihf.ErrPermission, asWhom)
	}
	return fmt.Errorf("%w: uid %d may not give commands; see [access] command_uids", mihf.ErrPermission, uid)
}

// Administer fails with mihf.ErrPermission unless the caller is an administrator.
func (a *Access) Administer(who mihf.Caller) error {
	if a.Admin(who) {
		return nil
	}
	return fmt.Errorf("%w: only root, the daemon's own user or an administrator's certificate may do this", mihf.ErrPermission)
}
