package access

import (
	"fmt"

	"mihf.dev/mihf"
)

// DeniedError is a refusal for want of a role. It wraps mihf.ErrPermission.
type DeniedError struct {
	Who    mihf.Identity
	Role   Role // that is missing
	nobody bool // it has the role, but is no flow's owner
}

// Error says whose role is missing, and where it is granted.
func (d *DeniedError) Error() string {
	if d.nobody {
		return fmt.Sprintf("%v: %v owns no flows: %s", mihf.ErrPermission, d.Who, d.owner())
	}
	return fmt.Sprintf("%v: %v lacks the role %v: %s", mihf.ErrPermission, d.Who, d.Role, d.grant())
}

// Unwrap makes it a mihf.ErrPermission.
func (d *DeniedError) Unwrap() error { return mihf.ErrPermission }

// owner says how the caller becomes a flow's owner.
func (d *DeniedError) owner() string {
	if d.Who == (mihf.Identity{}) {
		return "connect by the unix socket, or with a name that a grant of [access] gives an as_uid"
	}
	return "give it an as_uid in a grant of [access]"
}

// grant says where the role is given.
func (d *DeniedError) grant() string {
	key := "uids"
	if _, ok := d.Who.Certificate(); ok {
		key = "certificates"
	} else if _, ok := d.Who.NATSUser(); ok {
		key = "nats_users"
	} else if d.Who == (mihf.Identity{}) {
		return "connect by the unix socket, or with a name that a grant of [access] has"
	}
	return fmt.Sprintf("it needs a grant of [access] that has it in %s, with roles = [%q]", key, d.Role.String())
}
