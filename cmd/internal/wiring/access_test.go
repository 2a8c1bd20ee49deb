package wiring

import (
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/config"
)

// TestAccess: every list of a grant, its roles and its owner arrive; the default is the core's.
func TestAccess(t *testing.T) {
	if c := config.Defaults().Access; roles(c.Default) != access.Default {
		t.Errorf("the default is %v, want %v", roles(c.Default), access.Default)
	}
	table := Access(&config.Access{Default: []string{"see"}, Grants: []config.Grant{{
		UIDs: []uint32{4241}, GIDs: []uint32{27}, Certificates: []string{"bus-17"}, NATSUsers: []string{"fleet"},
		Roles: []string{"command", "register-own"}, AsUID: new(uint32(990)),
	}}})
	want := access.Of(access.See, access.Command, access.RegisterOwn)
	for name, who := range map[string]mihf.Caller{
		"uid":         {UID: mihf.Some(uint32(4241))},
		"gid":         {UID: mihf.Some(uint32(4242)), GID: mihf.Some(uint32(27))},
		"certificate": {Front: "grpc", Name: "bus-17"},
		"NATS user":   {Front: "nats", Name: "fleet"},
	} {
		if got := table.Roles(who); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if uid, owns := table.UID(who).Get(); !owns || (who.Name != "" && uid != 990) {
			t.Errorf("%s owns the flows of %d (%v)", name, uid, owns)
		}
	}
	if got := table.Roles(mihf.Caller{UID: mihf.Some(uint32(4242))}); got != access.Of(access.See) {
		t.Errorf("others: %v", got)
	}
	if got := table.Roles(Self()); got != access.All {
		t.Errorf("the daemon itself: %v", got)
	}
	for i, name := range Known().Roles {
		if got := roles([]string{name}); got != access.Of(access.Role(i)) {
			t.Errorf("%s is %v", name, got)
		}
	}
}
