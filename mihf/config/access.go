package config

import (
	"slices"
	"strings"
)

// into checks the section [access] and puts it into a.
func (r *rawAccess) into(c *checker, a *Access, roles []string) {
	if r.Default != nil {
		c.roles("access.default", *r.Default, roles)
		a.Default = *r.Default
	}
	owners := map[string]uint32{} // of names, with their kind
	for i := range r.Grants {
		key := element("access.grants", i)
		g := r.Grants[i].checked(c, key, roles)
		c.oneOwner(key, "certificates", g.Certificates, g.AsUID, owners)
		c.oneOwner(key, "nats_users", g.NATSUsers, g.AsUID, owners)
		a.Grants = append(a.Grants, g)
	}
}

// checked returns the grant; key is its own.
func (r *rawGrant) checked(c *checker, key string, roles []string) Grant {
	g := Grant{UIDs: r.UIDs, GIDs: r.GIDs, Certificates: r.Certificates, NATSUsers: r.NATSUsers, Roles: r.Roles, AsUID: r.AsUID}
	c.roles(key+".roles", g.Roles, roles)
	c.must(!slices.Contains(g.Certificates, ""), key+".certificates", "has an empty name; give common names of certificates")
	c.must(!slices.Contains(g.NATSUsers, ""), key+".nats_users", "has an empty name; give names of NATS users")
	names := len(g.Certificates) + len(g.NATSUsers)
	c.must(len(g.UIDs)+len(g.GIDs)+names > 0, key, "is for nobody; give uids, gids, certificates or nats_users")
	c.must(len(g.Roles) > 0 || g.AsUID != nil, key, "gives nothing; give roles, some of %s", strings.Join(roles, ", "))
	c.must(g.AsUID == nil || names > 0, key+".as_uid", "is for certificates and nats_users, and the grant names none; users and groups own their flows as they are")
	return g
}

// roles checks names of roles.
func (c *checker) roles(key string, given, known []string) {
	for _, r := range given {
		c.must(slices.Contains(known, r), key, "%q is no role; give some of %s", r, strings.Join(known, ", "))
	}
}

// oneOwner checks that no name is given a second owner.
func (c *checker) oneOwner(key, list string, names []string, owner *uint32, owners map[string]uint32) {
	if owner == nil {
		return
	}
	for _, name := range names {
		had, twice := owners[list+name]
		c.must(!twice || had == *owner, key+".as_uid", "%q in %s has the as_uid %d already; one name owns the flows of one uid", name, list, had)
		owners[list+name] = *owner
	}
}
