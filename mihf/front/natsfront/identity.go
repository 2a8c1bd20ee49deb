package natsfront

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"mihf.dev/mihf"
	"mihf.dev/proto/natsproto"
)

// Grant is what a caller may hear, which the embedded server's permissions are made of.
type Grant struct {
	Events   bool             // events and snapshots
	AllHints bool             // the hints to all flows
	Owner    mihf.Opt[uint32] // the uid whose flows the caller has, and may hear the hints to
}

// Accounts of the embedded server. Users are in one. The requests among what they publish
// go to the daemon's own, by a service import that adds who asks.
const (
	usersAccount  = "MIHF"
	daemonAccount = "MIHFD"
)

// requestInfo is what we need of a server's word about who sent a request.
type requestInfo struct {
	Account string `json:"acc"`
	User    string `json:"user"`
	Kind    string `json:"kind"`
	JWT     string `json:"jwt"`
}

// name returns the user's. That of one who came with a JWT is the JWT's subject, which the
// server has checked; what else it says of such a user, the user said.
func (r *requestInfo) name() string {
	if r.JWT == "" {
		return r.User
	}
	parts := strings.Split(r.JWT, ".")
	if len(parts) != 3 {
		return ""
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(b, &claims) != nil {
		return ""
	}
	return claims.Subject
}

// maxRequestInfo bounds the octets of that word.
const maxRequestInfo = 16 << 10

// identity finds out who sent a request.
type identity struct {
	trust   bool              // the server says who it is
	account string            // that it must name; "": any
	nkeys   map[string]string // names of users that come with a key
	other   string            // who is not known
}

// of returns who sent a request. inbox is the user whose inboxes the caller may name; "": any.
func (i *identity) of(h natsproto.Header) (who mihf.Caller, inbox string, err error) {
	if !i.trust {
		return mihf.Caller{Front: "nats", Name: i.other}, "", nil
	}
	// The server puts its word behind what the client sent, and takes out what it finds of
	// the same name. It does not find all that a client's library would take for a header.
	said := h[natsproto.HeaderRequestInfo]
	if len(said) != 1 || len(said[0]) > maxRequestInfo {
		return who, "", fmt.Errorf("%w: the server says %d times who asks, once is needed", mihf.ErrPermission, len(said))
	}
	var r requestInfo
	if err := json.Unmarshal([]byte(said[0]), &r); err != nil {
		return who, "", fmt.Errorf("%w: the server's word about who asks cannot be read: %w", mihf.ErrPermission, err)
	}
	if i.account != "" && r.Account != i.account {
		return who, "", fmt.Errorf("%w: requests come from account %q", mihf.ErrPermission, r.Account)
	}
	name := r.name()
	if n, known := i.nkeys[name]; known {
		name = n
	}
	if r.Kind == "Leafnode" {
		return mihf.Caller{Front: "nats", Name: i.other}, "", nil
	}
	if !validName(name) {
		return who, "", fmt.Errorf("%w: the server names no user that can be one of ours: %.80q", mihf.ErrPermission, name)
	}
	if i.account == "" {
		return mihf.Caller{Front: "nats", Name: name}, "", nil
	}
	return mihf.Caller{Front: "nats", Name: name}, name, nil
}
