package grpcfront

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

func ask(t *testing.T, conn *grpc.ClientConn) error {
	t.Helper()
	_, err := mihv1.NewAdminServiceClient(conn).Status(t.Context(), &mihv1.StatusRequest{})
	return err
}

// limited checks a refusal that names the key which would make more room.
func limited(t *testing.T, what string, err error, key string) {
	t.Helper()
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "; see [grpc] "+key) {
		t.Errorf("%s: %v, want RESOURCE_EXHAUSTED that names %s", what, err, key)
	}
}

// until waits for what another goroutine brings about.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !so(); runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// "One user cannot take the connections that the others need": those beyond its share are
// told so, and what was closed makes room.
func TestShareOfConnections(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("unsupported: connecting as several users needs root")
	}
	s, path, _ := serve(t, newFake(), Options{MaxConnectionsPerUser: 1})
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	first := dial(t, path, as(4241))
	if err := ask(t, first); err != nil {
		t.Fatal(err)
	}
	limited(t, "a second connection", ask(t, dial(t, path, as(4241))), "max_connections_per_user")
	if err := ask(t, dial(t, path, as(4242))); err != nil {
		t.Errorf("another user: %v", err)
	}
	if c := s.Counts(); c.RefusedConnections == 0 || c.RefusedCalls == 0 {
		t.Errorf("counts %+v", c)
	}
	_ = first.Close()
	until(t, "room for a new one", func() bool { return ask(t, dial(t, path, as(4241))) == nil })
}

// A certificate's connections are one user's, whoever makes them.
func TestShareOfACertificate(t *testing.T) {
	ca, ln := newAuthority(t), listenTCP(t)
	serve(t, newFake(), Options{Listeners: []net.Listener{ln}, MaxConnectionsPerUser: 1, TLS: ca.server(t)})
	conn := func(name string) *grpc.ClientConn {
		conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			RootCAs: ca.pool, Certificates: []tls.Certificate{ca.keyPair(t, name)}, MinVersion: tls.VersionTLS13,
		})))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	if err := errors.Join(ask(t, conn("a")), ask(t, conn("b"))); err != nil {
		t.Fatal(err)
	}
	limited(t, "a second connection", ask(t, conn("a")), "max_connections_per_user")
}

func listenTCP(t *testing.T) net.Listener {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func (a *authority) server(t *testing.T) *tls.Config {
	t.Helper()
	return &tls.Config{
		Certificates: []tls.Certificate{a.keyPair(t, "broker")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool, MinVersion: tls.VersionTLS13,
	}
}

// "Connections beyond a user's share are told so: they stay for a moment, and only a few."
func TestFewLinger(t *testing.T) {
	s, path, _ := serve(t, newFake(), Options{MaxConnectionsPerUser: 1})
	const many = 1 + maxLingering + 10
	for range many {
		c, err := dialUnix(t, path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
	}
	until(t, "all were looked at", func() bool { return s.connections.refused.Load() == many-1 })
	s.connections.mu.Lock()
	lingering := s.connections.lingering
	s.connections.mu.Unlock()
	if lingering > maxLingering {
		t.Errorf("%d stay, want at most %d", lingering, maxLingering)
	}
	until(t, "the others are closed", func() bool { return s.Counts().Connections == 1 })
}

// Whoever shows no certificate leaves room to the others.
func TestStrangersAreBounded(t *testing.T) {
	ca, ln := newAuthority(t), listenTCP(t)
	s, path, _ := serve(t, newFake(), Options{Listeners: []net.Listener{ln}, TLS: ca.server(t), MaxConnections: maxStrangers + 1})
	var strangers []net.Conn
	for range maxStrangers {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		strangers = append(strangers, c)
	}
	until(t, "all are there", func() bool { return s.Counts().Connections == maxStrangers })
	one, err := new(net.Dialer).DialContext(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.Close() }()
	until(t, "one more is refused", func() bool { return s.Counts().RefusedConnections == 1 })
	if err := ask(t, dial(t, path)); err != nil {
		t.Errorf("one who is known: %v", err)
	}
	for _, c := range strangers {
		_ = c.Close()
	}
	until(t, "their end makes room", func() bool {
		s.connections.mu.Lock()
		defer s.connections.mu.Unlock()
		return s.connections.strangers == 0
	})
}

// A user's streams and requests under way are bounded over all its connections.
func TestShareOfCalls(t *testing.T) {
	b := newFake()
	s, path, _ := serve(t, b, Options{MaxCallsPerUser: 2})
	subscribe := func() (context.CancelFunc, grpc.ServerStreamingClient[mihv1.SubscribeResponse]) {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		stream, err := mihv1.NewEventServiceClient(dial(t, path)).Subscribe(ctx, &mihv1.SubscribeRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return cancel, stream
	}
	end, _ := subscribe()
	<-b.opened
	subscribe()
	<-b.opened
	_, third := subscribe()
	_, err := third.Recv()
	limited(t, "a third stream", err, "max_calls_per_user")
	limited(t, "a request", ask(t, dial(t, path)), "max_calls_per_user")
	if n := s.Counts().RefusedCalls; n != 2 {
		t.Errorf("%d refused calls, want 2", n)
	}
	end()
	until(t, "room for a request", func() bool { return ask(t, dial(t, path)) == nil })
}

// Who begins calls and waits for no answer loses the connection.
func TestHalfOpenCalls(t *testing.T) {
	s, path, _ := serve(t, newFake(), Options{MaxCallsPerUser: 4})
	conn := dial(t, path)
	var calls []grpc.ClientStream
	for range 9 {
		call, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, mihv1.AdminService_Status_FullMethodName)
		if err != nil {
			break // the connection is gone already
		}
		calls = append(calls, call)
	}
	for _, call := range calls {
		wantCode(t, "a call", call.RecvMsg(new(mihv1.StatusResponse)), codes.Unavailable)
	}
	until(t, "what is gone makes room", func() bool { return ask(t, dial(t, path)) == nil })
	if n := s.Counts().RefusedCalls; n == 0 {
		t.Error("nothing is counted")
	}
}

// narrow keeps gRPC from taking more than 64 KiB of what nobody reads.
var narrow = grpc.WithStaticStreamWindowSize(64 << 10)

// unreadSnapshot asks for a snapshot and does not read it.
func unreadSnapshot(t *testing.T, conn *grpc.ClientConn) (read func() error, cancel context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	call, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, mihv1.EventService_GetSnapshot_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(call.SendMsg(&mihv1.GetSnapshotRequest{}), call.CloseSend()); err != nil {
		t.Fatal(err)
	}
	_, _ = call.Header() // comes with the beginning of the answer
	return func() error { return call.RecvMsg(new(mihv1.GetSnapshotResponse)) }, cancel
}

func (s *shares) sum() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unread.Sum()
}

// "What a user's peers leave unread is bounded": until it is read, taken back, or the
// connection is gone.
func TestShareOfUnreadReplies(t *testing.T) {
	b := newFake()
	b.large = true
	s, path, _ := serve(t, b, Options{MaxUnreadBytesPerUser: 500 << 10})
	conn := dial(t, path, narrow)
	read, _ := unreadSnapshot(t, conn)
	_, takeBack := unreadSnapshot(t, conn)
	third, _ := unreadSnapshot(t, conn)
	limited(t, "a third snapshot", third(), "max_unread_bytes_per_user")
	if n := s.shares.sum(); n < 400_000 {
		t.Fatalf("%d bytes are unread", n)
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	until(t, "what was read does not count", func() bool { return s.shares.sum() < 300_000 })
	takeBack()
	until(t, "what was taken back does not count", func() bool { return s.shares.sum() == 0 })

	gone := dial(t, path, narrow)
	unreadSnapshot(t, gone)
	if s.shares.sum() == 0 {
		t.Fatal("nothing is unread")
	}
	_ = gone.Close()
	until(t, "what a lost connection left does not count", func() bool { runtime.GC(); return s.shares.sum() == 0 })
	if err := ask(t, conn); err != nil {
		t.Error(err)
	}
	until(t, "a small reply that was read does not count", func() bool { return s.shares.sum() == 0 })
}

// The snapshots of subscriptions count too.
func TestShareOfUnreadSnapshots(t *testing.T) {
	b := newFake()
	s, path, _ := serve(t, b, Options{MaxUnreadBytesPerUser: 300 << 10})
	conn := dial(t, path, narrow)
	subscribe := func() grpc.ServerStreamingClient[mihv1.SubscribeResponse] {
		stream, err := mihv1.NewEventServiceClient(conn).Subscribe(t.Context(), &mihv1.SubscribeRequest{})
		if err != nil {
			t.Fatal(err)
		}
		(<-b.opened).items <- mihf.Delivery{Kind: mihf.DeliverSnapshot, Snapshot: &mihf.Snapshot{Boot: 1, Sensors: large}}
		return stream
	}
	first := subscribe()
	until(t, "the first snapshot is encoded", func() bool { return s.shares.sum() > 0 })
	_, err := subscribe().Recv()
	limited(t, "a second snapshot", err, "max_unread_bytes_per_user")
	if p, err := first.Recv(); err != nil || len(p.GetSnapshot().GetSensors()) != len(large) {
		t.Errorf("the first snapshot: %v", err)
	}
	until(t, "room after it was read", func() bool { _, err := subscribe().Recv(); return err == nil })
}
