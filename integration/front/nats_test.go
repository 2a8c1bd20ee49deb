package front

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mihf.dev/clients"
	"mihf.dev/clients/mihnats"
	"mihf.dev/integration/daemons"
	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/front"
	"mihf.dev/mihf/front/natsfront"
	"mihf.dev/proto/natsproto"
)

// natsSecret is every user's password.
const natsSecret = "secret"

// natsGrant is what the suite's table grants, in the front's terms.
func natsGrant(who mihf.Caller) natsfront.Grant {
	t := table(NATSUsers()...)
	return natsfront.Grant{Events: t.May(who, access.See), AllHints: t.May(who, access.RegisterAny), Owner: t.UID(who)}
}

// serveNATS runs a front until the test ends.
func serveNATS(t *testing.T, o natsfront.Options) *natsfront.Server {
	t.Helper()
	o.Reader, o.Grant, o.Grace = inside, natsGrant, 50*time.Millisecond
	s, err := natsfront.New(o)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, s.Run)
	<-s.Ready()
	return s
}

// embeddedNATS serves b by a server in the process.
func embeddedNATS(t *testing.T, b front.Broker, listen string) *natsfront.Server {
	t.Helper()
	e := &natsfront.Embedded{Listen: listen}
	for _, uid := range UIDs() {
		e.Users = append(e.Users, natsfront.User{Name: NATSUser(uid), Secret: natsSecret})
	}
	return serveNATS(t, natsfront.Options{Broker: b, Embedded: e})
}

// dialNATS returns how to connect as a user.
func dialNATS(node mihf.NodeID, url string, in nats.InProcessConnProvider) func(*testing.T, uint32) clients.Client {
	return func(t *testing.T, uid uint32) clients.Client {
		t.Helper()
		c, err := mihnats.Dial(url, mihnats.Options{Node: node, User: NATSUser(uid), Password: natsSecret, InProcess: in})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

func TestNATSInProcess(t *testing.T) {
	Run(t, Front{Name: "nats in process", Grants: NATSUsers(), Serve: func(t *testing.T, b front.Broker) func(*testing.T, uint32) clients.Client {
		t.Helper()
		return dialNATS(b.Node(), "", embeddedNATS(t, b, ""))
	}})
}

func TestNATSLoopback(t *testing.T) {
	Run(t, Front{Name: "nats on loopback", Grants: NATSUsers(), Serve: func(t *testing.T, b front.Broker) func(*testing.T, uint32) clients.Client {
		t.Helper()
		return dialNATS(b.Node(), "nats://"+embeddedNATS(t, b, "127.0.0.1:0").Addr().String(), nil)
	}})
}

// An external server that says who asks: the recipe of docs/nats.md.
func TestNATSExternal(t *testing.T) {
	Run(t, Front{Name: "nats external", Grants: NATSUsers(), Serve: func(t *testing.T, b front.Broker) func(*testing.T, uint32) clients.Client {
		t.Helper()
		server := daemons.NATS(t, daemons.NATSConfig{Config: externalConfig(b.Node())})
		serveNATS(t, natsfront.Options{Broker: b, External: &natsfront.External{
			Servers: []string{server.URL}, Auth: []nats.Option{nats.UserInfo("mihfd", natsSecret)}, TrustRequestInfo: true,
		}})
		dial := dialNATS(b.Node(), server.URL, nil)
		c := dial(t, admin)
		for began := time.Now(); ; { // the front is ready before it is connected
			_, err := c.Status(t.Context())
			if err == nil {
				return dial
			}
			if time.Since(began) > patient {
				t.Fatal(err)
			}
		}
	}})
}

// externalConfig is a server's configuration for a node and the users of the tests.
func externalConfig(node mihf.NodeID) string {
	var users strings.Builder
	for _, uid := range UIDs() {
		g := natsGrant(mihf.Caller{Front: "nats", Name: NATSUser(uid)})
		hear := []string{natsproto.UserInbox(NATSUser(uid)) + ".>"}
		if g.Events {
			hear = append(hear, natsproto.Events(node), natsproto.Sync(node))
		}
		if owner, known := g.Owner.Get(); known {
			hear = append(hear, natsproto.OwnerHints(node, owner))
		}
		if g.AllHints {
			hear = append(hear, natsproto.Hints(node))
		}
		fmt.Fprintf(&users, "{user: %s, password: %s, permissions: {publish: [%s, %s], subscribe: [%s]}}\n",
			NATSUser(uid), natsSecret, natsproto.Services(node), natsproto.Nodes, strings.Join(hear, ", "))
	}
	return strings.NewReplacer("NODE", natsproto.Token(string(node)), "USERS", users.String()).Replace(`
accounts {
  MIHFD {
    users: [{user: mihfd, password: secret}]
    exports: [
      {service: "mih.v1.NODE.svc.*", accounts: [MIHF]}, {service: "mih.v1.svc.nodes", accounts: [MIHF]}
      {stream: "mih.v1.NODE.>", accounts: [MIHF]}, {stream: "_INBOX.>", accounts: [MIHF]}
    ]
  }
  MIHF {
    users: [USERS]
    imports: [
      {service: {account: MIHFD, subject: "mih.v1.NODE.svc.*"}, share: true}
      {service: {account: MIHFD, subject: "mih.v1.svc.nodes"}, share: true}
      {stream: {account: MIHFD, subject: "mih.v1.NODE.event.>"}}, {stream: {account: MIHFD, subject: "mih.v1.NODE.hint.>"}}
      {stream: {account: MIHFD, subject: "mih.v1.NODE.owner.>"}}, {stream: {account: MIHFD, subject: "mih.v1.NODE.sync"}}
      {stream: {account: MIHFD, subject: "_INBOX.>"}}
    ]
  }
}
`)
}
