package natsfront

import (
	"crypto/subtle"
	"encoding/base64"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/bcrypt"

	"mihf.dev/mihf"
)

// gate lets clients of the embedded server in: those that prove who they are, with what that
// user may do now, and no more of each user than its share of connections. It is asked by the
// server's goroutines.
type gate struct {
	node    mihf.NodeID
	server  func() *server.Server
	grant   func(mihf.Caller) Grant
	users   map[string]string // passwords by name
	keys    map[string]string // names by public key
	own     map[string]string // accounts of the daemon's connections, by public key
	limit   int               // connections of one user
	log     *slog.Logger
	refused atomic.Uint64 // connections: their user had too many, or too many said no name

	mu     sync.Mutex // guards the following
	open   map[uint64]admitted
	noted  map[string]bool // users of whom it was logged that they have too many
	wanted map[string]int  // connections of each user that are open, or were
}

// admitted is a connection that was let in.
type admitted struct {
	user  string // "": the daemon itself
	grant Grant
}

// Bounds of connections that have not said who they are: how many may wait for that, where one
// looks, the oldest go; and how often one looks.
const (
	maxStrangers = 128
	sweepEvery   = 250 * time.Millisecond
)

func newGate(e *embedded) (*gate, error) {
	g := &gate{
		node: e.node, server: e.server.Load, grant: e.grant, limit: e.o.MaxConnections, log: e.log,
		users: map[string]string{}, keys: map[string]string{}, own: map[string]string{},
		open: map[uint64]admitted{}, noted: map[string]bool{}, wanted: map[string]int{},
	}
	for _, u := range e.o.Users {
		if u.nkey() {
			g.keys[u.Secret] = u.Name
		} else {
			g.users[u.Name] = u.Secret
		}
	}
	for _, own := range []struct {
		key nkeys.KeyPair
		in  string
	}{{e.publisher, usersAccount}, {e.answerer, daemonAccount}} {
		public, err := own.key.PublicKey()
		if err != nil {
			return nil, err
		}
		g.own[public] = own.in
	}
	return g, nil
}

// Check is asked by the server whether a client may come in.
func (g *gate) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	if o.JWT != "" { // which the server would repeat as who asks, if it had not taken it away
		return false
	}
	user, account := "", usersAccount
	if o.Nkey != "" {
		if !signed(o.Nkey, o.Sig, c.GetNonce()) {
			return false
		}
		if in, mine := g.own[o.Nkey]; mine {
			account = in
		} else if user = g.keys[o.Nkey]; user == "" {
			return false
		}
	} else if secret, known := g.users[o.Username]; known && proves(o.Password, secret) {
		user = o.Username
	} else {
		return false
	}
	a, err := g.server().LookupAccount(account)
	if err != nil {
		return false
	}
	as := &server.User{Account: a}
	if user != "" {
		granted, ok := g.admit(c.GetID(), user)
		if !ok {
			return false
		}
		as.Permissions = permissions(g.node, user, granted)
	} else {
		g.note(c.GetID(), admitted{})
	}
	c.RegisterUser(as)
	return true
}

// signed reports whether a signature of a nonce is by the key.
func signed(public, signature string, nonce []byte) bool {
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		if sig, err = base64.StdEncoding.DecodeString(signature); err != nil {
			return false
		}
	}
	key, err := nkeys.FromPublicKey(public)
	return err == nil && len(nonce) > 0 && key.Verify(nonce, sig) == nil
}

// proves reports whether a password is the secret's.
func proves(password, secret string) bool {
	if _, err := bcrypt.Cost([]byte(secret)); err == nil {
		return bcrypt.CompareHashAndPassword([]byte(secret), []byte(password)) == nil
	}
	return subtle.ConstantTimeCompare([]byte(secret), []byte(password)) == 1
}

// admit takes a connection of a user; false: it has its share of them.
func (g *gate) admit(id uint64, user string) (Grant, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wanted[user] >= g.limit {
		g.prune()
	}
	if g.wanted[user] >= g.limit {
		g.refused.Add(1)
		if !g.noted[user] {
			g.noted[user] = true
			g.log.Warn("NATS user refused: it has too many connections; see nats.max_connections_per_user", "user", user, "connections", g.wanted[user])
		}
		return Grant{}, false
	}
	granted := g.grant(mihf.Caller{Front: "nats", Name: user})
	g.put(id, admitted{user, granted})
	return granted, true
}

func (g *gate) note(id uint64, a admitted) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.put(id, a)
}

// put notes a connection that was let in, perhaps again. The lock is held.
func (g *gate) put(id uint64, a admitted) {
	g.drop(id)
	g.open[id] = a
	g.wanted[a.user]++
}

func (g *gate) drop(id uint64) {
	a, ok := g.open[id]
	if !ok {
		return
	}
	delete(g.open, id)
	if g.wanted[a.user]--; g.wanted[a.user] == 0 {
		delete(g.wanted, a.user)
		delete(g.noted, a.user)
	}
}

// prune forgets connections that have ended. The lock is held.
func (g *gate) prune() {
	s := g.server()
	for id := range g.open {
		if s.GetClient(id) == nil {
			g.drop(id)
		}
	}
}

// regrant ends the connections of users who may do more or less than when they came, and
// returns how many: they come back with what they may do now.
func (g *gate) regrant() (ended int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, a := range g.open {
		if a.user == "" || g.grant(mihf.Caller{Front: "nats", Name: a.user}) == a.grant {
			continue
		}
		if g.server().DisconnectClientByID(id) == nil {
			ended++
		}
		g.drop(id)
	}
	return ended
}

// sweep ends the oldest of the connections that have not said who they are, where those are
// too many: they would keep users out.
func (g *gate) sweep() {
	s := g.server()
	g.mu.Lock()
	g.prune()
	strangers := s.NumClients() - len(g.open)
	g.mu.Unlock()
	if strangers <= maxStrangers {
		return
	}
	all, err := s.Connz(&server.ConnzOptions{Sort: server.ByStart, Limit: maxConnections})
	if err != nil {
		return // the server ends
	}
	for _, c := range all.Conns {
		if strangers <= maxStrangers {
			return
		}
		g.mu.Lock()
		_, known := g.open[c.Cid]
		g.mu.Unlock()
		if !known && s.DisconnectClientByID(c.Cid) == nil {
			g.refused.Add(1)
			strangers--
		}
	}
}
