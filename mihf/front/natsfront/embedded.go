package natsfront

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"mihf.dev/mihf"
	"mihf.dev/proto/natsproto"
)

// Embedded says how the daemon's own server is made.
type Embedded struct {
	Users []User // who may connect, in the process too
	// MaxConnections bounds those of one user; 1024.
	MaxConnections int
	Listen         string // host:port; "": in the process only
	// TLS is the listener's. An address that is not loopback needs it, and it must verify
	// client certificates.
	TLS     *tls.Config
	Leaf    *Leaf    // nil: none
	History *History // nil: none
}

// Leaf joins the embedded server to a cluster, which sees the node then, and reaches it.
type Leaf struct {
	URLs       []*url.URL
	Credential Credential
	TLS        *tls.Config // nil: none
}

// Bounds of the embedded server.
const (
	maxConnections   = 4096
	maxSubscriptions = 8192 // of a connection
	maxPayload       = 1 << 20
	maxPending       = 4 << 20 // octets that wait for a connection before it is closed as slow
	writeDeadline    = 2 * time.Second
	pingEvery        = 10 * time.Second
	maxPings         = 2
	closedKept       = 16
	startTimeout     = 10 * time.Second
	startStep        = 20 * time.Millisecond // between two looks at whether it has started
)

// embedded is a server that runs in the process.
type embedded struct {
	o     *Embedded
	node  mihf.NodeID
	grant func(mihf.Caller) Grant
	log   *slog.Logger

	server              atomic.Pointer[server.Server] // a new one for each try to start
	gate                atomic.Pointer[gate]          // likewise
	users, daemon       *server.Account               // set by start
	leaf                leafWatch
	publisher, answerer nkeys.KeyPair // the daemon's own users
}

// checkEmbedded refuses what would let anyone in.
func checkEmbedded(o *Embedded) error {
	if len(o.Users) == 0 && o.Listen != "" {
		return errors.New("embedded NATS server: a listener needs users")
	}
	if o.TLS != nil && (o.TLS.ClientAuth != tls.RequireAndVerifyClientCert || o.TLS.ClientCAs == nil) {
		return errors.New("embedded NATS server: TLS must require client certificates and name the authority that signed them")
	}
	if o.Listen == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("embedded NATS server: %w", err)
	}
	if a, err := netip.ParseAddr(host); (err != nil || !a.IsLoopback()) && o.TLS == nil {
		return fmt.Errorf("embedded NATS server on %s: only a loopback address, 127.0.0.1 or ::1, goes without TLS and client certificates", o.Listen)
	}
	return nil
}

// permissions says what a user may do.
func permissions(node mihf.NodeID, user string, g Grant) *server.Permissions {
	publish := []string{natsproto.Services(node), natsproto.Nodes}
	hear := []string{natsproto.UserInbox(user) + ".>"}
	if g.Events {
		hear = append(hear, natsproto.Events(node), natsproto.Sync(node))
		publish = append(publish, natsproto.StreamRead(node)) // where no history is kept nobody answers, which says so at once
	}
	if owner, known := g.Owner.Get(); known {
		hear = append(hear, natsproto.OwnerHints(node, owner))
	}
	if g.AllHints {
		hear = append(hear, natsproto.Hints(node))
	}
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: publish},
		Subscribe: &server.SubjectPermission{Allow: hear},
	}
}

// newEmbedded makes a server that does nothing until start.
func newEmbedded(o *Embedded, node mihf.NodeID, grant func(mihf.Caller) Grant, log *slog.Logger) (*embedded, error) {
	if err := checkEmbedded(o); err != nil {
		return nil, err
	}
	if o.MaxConnections <= 0 {
		o.MaxConnections = 1024
	}
	e := &embedded{o: o, node: node, grant: grant, log: log}
	var err error
	if e.publisher, err = nkeys.CreateUser(); err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	if e.answerer, err = nkeys.CreateUser(); err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	_, err = e.renew() // what cannot be is known at once
	return e, err
}

// renew makes a server that does nothing until it is started; one that did not start cannot
// be again.
func (e *embedded) renew() (log *serverLog, err error) {
	opts, err := e.options()
	if err != nil {
		return nil, err
	}
	g, err := newGate(e)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	opts.CustomClientAuthentication = g
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	log = &serverLog{log: e.log, now: time.Now, fatal: make(chan string, 1)}
	s.SetLoggerV2(log, false, false, false)
	if old := e.gate.Swap(g); old != nil {
		g.refused.Store(old.refused.Load())
	}
	e.server.Store(s)
	return log, nil
}

func (e *embedded) options() (*server.Options, error) {
	opts := &server.Options{
		ServerName: "mihf-" + natsproto.Token(string(e.node)),
		DontListen: e.o.Listen == "",
		NoSigs:     true,

		MaxConn: maxConnections, MaxSubs: maxSubscriptions, MaxPayload: maxPayload, MaxPending: maxPending,
		PingInterval: pingEvery, MaxPingsOut: maxPings, WriteDeadline: writeDeadline,
		MaxClosedClients: closedKept, NoFastProducerStall: true, DisableJetStreamBanner: true,

		Accounts:          []*server.Account{server.NewAccount(usersAccount), server.NewAccount(daemonAccount)},
		AlwaysEnableNonce: true, // for users with keys
	}
	if e.o.Listen != "" {
		host, port, err := net.SplitHostPort(e.o.Listen)
		if err != nil {
			return nil, fmt.Errorf("embedded NATS server: %w", err)
		}
		opts.Host = host
		if opts.Port, err = strconv.Atoi(port); err != nil {
			return nil, fmt.Errorf("embedded NATS server: port %q: %w", port, err)
		}
		if opts.Port == 0 {
			opts.Port = server.RANDOM_PORT
		}
		if e.o.TLS != nil {
			opts.TLS, opts.TLSVerify, opts.TLSConfig = true, true, e.o.TLS
		}
	}
	if e.o.Leaf != nil {
		if err := e.addLeaf(opts); err != nil {
			return nil, err
		}
	}
	return opts, nil
}

// addLeaf lets a cluster see and reach the node. What it sends on the node's own subjects
// is not taken: it could pass for the daemon's.
func (e *embedded) addLeaf(opts *server.Options) error {
	l := e.o.Leaf
	remote := &server.RemoteLeafOpts{
		LocalAccount: usersAccount, URLs: slices.Clone(l.URLs),
		DenyImports: []string{
			natsproto.Events(e.node), natsproto.Hints(e.node), natsproto.Sync(e.node), natsproto.AllOwnerHints(e.node),
		},
		DialTimeout: 5 * time.Second,
	}
	if l.TLS != nil {
		remote.TLS, remote.TLSConfig = true, l.TLS
	}
	if err := l.Credential.leaf(remote); err != nil {
		return fmt.Errorf("embedded NATS server: leaf node: %w", err)
	}
	opts.LeafNode.Remotes = []*server.RemoteLeafOpts{remote}
	opts.LeafNode.ReconnectInterval = time.Second
	return nil
}

// start starts a server and joins the two accounts.
func (e *embedded) start() error {
	log, err := e.renew()
	if err != nil {
		return err
	}
	s := e.server.Load()
	s.Start()
	for end := time.Now().Add(startTimeout); err == nil && !s.ReadyForConnections(startStep); {
		select {
		case text := <-log.fatal:
			err = errors.New(text)
		default:
			if time.Now().After(end) {
				err = fmt.Errorf("not ready within %v", startTimeout)
			}
		}
	}
	if err == nil {
		err = e.join(s)
	}
	if err != nil {
		e.stop()
		return fmt.Errorf("embedded NATS server: %w", err)
	}
	return nil
}

// join lets requests pass from the users to the daemon, with the server's word about who
// sent them.
func (e *embedded) join(s *server.Server) (err error) {
	if e.users, err = s.LookupAccount(usersAccount); err != nil {
		return err
	}
	if e.daemon, err = s.LookupAccount(daemonAccount); err != nil {
		return err
	}
	users, daemon := e.users, e.daemon
	for _, subject := range []string{natsproto.Services(e.node), natsproto.Nodes} {
		if err := daemon.AddServiceExport(subject, []*server.Account{users}); err != nil {
			return err
		}
		if err := users.AddServiceImport(daemon, subject, subject); err != nil {
			return err
		}
		if err := users.SetServiceImportSharing(daemon, subject, true); err != nil {
			return err
		}
	}
	return nil
}

// keepHistory lets the daemon's account, to which nobody else can publish, have streams, and
// the users read the one. It may be called again.
func (e *embedded) keepHistory(h *History) error {
	s := e.server.Load()
	if !s.JetStreamEnabled() {
		err := s.EnableJetStream(&server.JetStreamConfig{
			StoreDir: h.Directory, MaxStore: h.MaxBytes, MaxMemory: historyMemory, Domain: natsproto.Token(string(e.node)),
		})
		if err != nil {
			_ = s.DisableJetStream() // of what was begun; else it would pass for enabled
			return fmt.Errorf("history in %s: %w", h.Directory, err)
		}
	}
	if e.daemon.JetStreamEnabled() {
		return nil
	}
	limits := map[string]server.JetStreamAccountLimits{"": {
		MaxMemory: historyMemory, MaxStore: h.MaxBytes, MaxStreams: 1, MaxConsumers: 16, MaxAckPending: -1,
		MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1,
	}}
	if err := e.daemon.EnableJetStream(limits, nil); err != nil {
		return fmt.Errorf("history in %s: %w", h.Directory, err)
	}
	read := natsproto.StreamRead(e.node)
	if err := e.daemon.AddServiceExportWithResponse(read, server.Streamed, []*server.Account{e.users}); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	if err := e.users.AddServiceImport(e.daemon, read, read); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// heard reports whether somebody listens to a subject: a user, or a cluster behind a leaf
// node.
func (e *embedded) heard(subject string) bool { return e.users.Interest(subject) > 0 }

// kept reports whether the history has the subject.
func (e *embedded) kept(subject string) bool {
	return e.o.History != nil && e.daemon.Interest(subject) > 0
}

// leafWatch notices leaf links that were made anew. One goroutine uses it.
type leafWatch struct {
	known uint64 // newest connection that was seen
	fresh bool   // at the newest look, for the first time
}

// leafEvery is how often one looks.
const leafEvery = time.Second

// lookAtLeaf reports whether a leaf link was made at least a look ago, and was not reported
// yet: what was published while there was none is missing beyond it. By then the server
// knows who listens there. And it reports whether there is a link now.
func (e *embedded) lookAtLeaf() (rejoined, linked bool) {
	links, err := e.server.Load().Leafz(nil)
	if err != nil { // it ends
		return false, true
	}
	was := e.leaf
	e.leaf.fresh = false
	for _, l := range links.Leafs {
		if l.ID > e.leaf.known {
			e.leaf = leafWatch{known: l.ID, fresh: true}
		}
	}
	return was.fresh, len(links.Leafs) > 0
}

// guard keeps those who do not say who they are from taking all connections, until ctx ends.
func (e *embedded) guard(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			e.gate.Load().sweep()
		}
	}
}

// stop ends the server and waits for that.
func (e *embedded) stop() {
	s := e.server.Load()
	s.Shutdown()
	s.WaitForShutdown()
}
