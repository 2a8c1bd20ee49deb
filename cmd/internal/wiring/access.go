package wiring

import (
	"os"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/config"
)

// self is the daemon's own uid.
func self() uint32 { return uint32(os.Geteuid()) } //nolint:gosec // a uid has 32 bits

// Self is the daemon as a caller of its own broker: it has every role.
func Self() mihf.Caller {
	return mihf.Caller{Front: "inproc", UID: mihf.Some(self()), PID: os.Getpid()}
}

// Access returns the table of a configuration, for this process.
func Access(c *config.Access) *access.Table {
	grants := make([]access.Grant, len(c.Grants))
	for i := range c.Grants {
		g := &c.Grants[i]
		grants[i] = access.Grant{
			UIDs: g.UIDs, GIDs: g.GIDs, Certificates: g.Certificates, NATSUsers: g.NATSUsers, Roles: roles(g.Roles),
		}
		if g.AsUID != nil {
			grants[i].AsUID = mihf.Some(*g.AsUID)
		}
	}
	return access.New(self(), roles(c.Default), grants...)
}

// roles returns the set of names that were checked.
func roles(names []string) (s access.Roles) {
	for _, name := range names {
		if r, ok := access.ParseRole(name); ok {
			s |= access.Of(r)
		}
	}
	return s
}
