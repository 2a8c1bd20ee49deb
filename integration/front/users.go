package front

import (
	"fmt"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
)

// Users of the tests. The daemon's own is one that nobody connects as.
const (
	daemon  = uint32(4240)
	alice   = uint32(4241)
	bob     = uint32(4242)
	gateway = uint32(4243)
	guest   = uint32(4244)
	admin   = uint32(0)
)

// granted is what each user may do.
var granted = map[uint32]access.Roles{
	alice:   access.Of(access.See, access.RegisterOwn, access.Command),
	bob:     access.Of(access.See, access.RegisterOwn),
	gateway: access.Of(access.See, access.RegisterAny),
	guest:   0,
	admin:   access.All,
}

// table is the access of a bed's broker: nothing by default.
func table(more ...access.Grant) *access.Table {
	var grants []access.Grant
	for uid, roles := range granted {
		grants = append(grants, access.Grant{UIDs: []uint32{uid}, Roles: roles})
	}
	return access.New(daemon, 0, append(grants, more...)...)
}

// NATSUser is the name under which a user of the tests connects to NATS.
func NATSUser(uid uint32) string { return fmt.Sprintf("uid-%d", uid) }

// NATSUsers returns the grants by which the users of the tests have their roles and flows
// under their NATS names too.
func NATSUsers() []access.Grant {
	var grants []access.Grant
	for uid, roles := range granted {
		grants = append(grants, access.Grant{NATSUsers: []string{NATSUser(uid)}, Roles: roles, AsUID: mihf.Some(uid)})
	}
	return grants
}

// UIDs returns the uids that the tests connect as, for fronts that must know them before.
func UIDs() []uint32 { return []uint32{alice, bob, gateway, guest, admin} }
