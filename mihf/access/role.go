package access

import (
	"slices"
	"strings"
)

// Role is one thing that callers may be allowed to do.
type Role uint8

// The roles.
const (
	See         Role = iota // follow events, read the state, and the hints of own flows
	RegisterOwn             // register own flows
	RegisterAny             // register, see and update the flows of any owner; implies RegisterOwn
	Command                 // give commands: Link_Configure_Thresholds
	Administer              // record what sensors see
	numRoles
)

var roleNames = [numRoles]string{"see", "register-own", "register-any", "command", "administer"}

// String returns the role's name in a configuration.
func (r Role) String() string {
	if r >= numRoles {
		return "unknown"
	}
	return roleNames[r]
}

// ParseRole finds a role by its name.
func ParseRole(name string) (Role, bool) {
	i := slices.Index(roleNames[:], name)
	return Role(max(i, 0)), i >= 0 //nolint:gosec // there are five
}

// RoleNames returns the names of all roles.
func RoleNames() []string { return slices.Clone(roleNames[:]) }

// Roles is a set of roles.
type Roles uint8

// Sets of roles.
const (
	Default = Roles(1<<See | 1<<RegisterOwn) // where a configuration gives none
	All     = Roles(1<<numRoles - 1)
)

// Of returns the set of the roles.
func Of(roles ...Role) (s Roles) {
	for _, r := range roles {
		s |= 1 << r
	}
	return s
}

// Has reports whether the role is in the set.
func (s Roles) Has(r Role) bool { return s>>r&1 != 0 }

// whole adds what the roles of the set imply.
func (s Roles) whole() Roles {
	if s.Has(RegisterAny) {
		s |= 1 << RegisterOwn
	}
	return s
}

func (s Roles) String() string {
	var names []string
	for r := range numRoles {
		if s.Has(r) {
			names = append(names, r.String())
		}
	}
	return strings.Join(names, ", ")
}
