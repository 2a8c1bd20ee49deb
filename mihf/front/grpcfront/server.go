package grpcfront

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf/front"
	"mihf.dev/mihf/front/encoded"
	"mihf.dev/mihf/front/patient"
	mihv1 "mihf.dev/proto/mih/v1"
)

// Options say how to serve. Fields that are zero mean the default that they name.
type Options struct {
	Broker    front.Broker
	Listeners []net.Listener // unix sockets, and others where TLS is set; Run closes them
	Logger    *slog.Logger   // nil: discard
	// Encoded is shared with other fronts; nil: the server's own.
	Encoded *encoded.Events
	// Hidden is what connections over TCP get, shared likewise; nil: what the others get.
	Hidden *encoded.Events

	// TLS is needed for listeners that are not unix sockets. It must require and verify
	// client certificates.
	TLS *tls.Config

	MaxConnections int    // 4096; more are closed at once
	MaxStreams     uint32 // of one connection; 2048

	// What one user may have: by uid, or by the name of its certificate.
	MaxConnectionsPerUser int // 1024
	MaxCallsPerUser       int // streams and requests under way; 2048
	MaxUnreadBytesPerUser int // of replies and snapshots; all users: four times as much; 32 MiB

	Grace time.Duration // for streams to end by themselves at the end of Run; 1 s
}

func (o *Options) setDefaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		v *int
		n int
	}{{&o.MaxConnections, 4096}, {&o.MaxConnectionsPerUser, 1024}, {&o.MaxCallsPerUser, 2048}, {&o.MaxUnreadBytesPerUser, 32 << 20}} {
		if *d.v <= 0 {
			*d.v = d.n
		}
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = 2048
	}
	if o.Grace <= 0 {
		o.Grace = time.Second
	}
}

// Sizes for many small connections. Each has its own small write buffer: gRPC's shared
// ones are at least a page, and when an event goes to all, every connection holds one.
const (
	readBuffer    = 512
	writeBuffer   = 1 << 10
	maxRequest    = 64 << 10
	window        = 64 << 10 // static: gRPC would probe with a ping for each message
	maxHeaderList = 16 << 10
)

// Server is the gRPC front. See the package comment.
type Server struct {
	mihv1.UnimplementedEventServiceServer
	mihv1.UnimplementedTransportServiceServer
	mihv1.UnimplementedCommandServiceServer
	mihv1.UnimplementedInformationServiceServer
	mihv1.UnimplementedAdminServiceServer

	o       Options
	broker  front.Broker
	log     *slog.Logger
	grpc    *grpc.Server
	health  *health.Server
	ready   chan struct{}
	readers sync.WaitGroup // of requests on Attach and Record streams
	encoded *encoded.Events
	hidden  *encoded.Events
	counts  struct{ panics, encodeErrors, malformed, sent, acceptErrors atomic.Uint64 }
	named   sync.Map // methods that a malformed request was logged of

	connections connections
	shares      shares
}

// Counts are what a server has done since New.
type Counts struct {
	Connections        int    // open now
	RefusedConnections uint64 // beyond MaxConnections, or a user's share of them
	RefusedCalls       uint64 // beyond a user's share of calls or unread bytes
	AcceptErrors       uint64 // times that accepting failed; it was tried again
	Sent               uint64 // deliveries
	EncodeErrors       uint64 // events that could not be encoded and were skipped
	Malformed          uint64 // requests that could not be read, or made no sense
	Panics             uint64 // requests that ended in a panic
}

// New returns a server that does nothing until Run. It fails if the listeners would let
// in callers that nobody authenticated.
func New(o Options) (*Server, error) {
	o.setDefaults()
	if o.Broker == nil || len(o.Listeners) == 0 {
		return nil, errors.New("gRPC front: a broker and a listener are needed")
	}
	if o.Encoded == nil {
		o.Encoded = encoded.New(o.Broker.Node(), o.Broker.Now)
	}
	if o.Hidden == nil {
		o.Hidden = o.Encoded
	}
	for _, ln := range o.Listeners {
		if ln.Addr().Network() != "unix" && o.TLS == nil {
			return nil, fmt.Errorf("gRPC front on %v: TCP only with TLS and client certificates", ln.Addr())
		}
	}
	s := &Server{o: o, broker: o.Broker, encoded: o.Encoded, hidden: o.Hidden, log: o.Logger, health: health.NewServer(), ready: make(chan struct{})}
	s.connections.set(&o)
	creds, err := newCreds(o.TLS, &s.connections)
	if err != nil {
		return nil, err
	}
	s.shares.set(&o)
	s.grpc = grpc.NewServer(s.options(creds)...)
	mihv1.RegisterEventServiceServer(s.grpc, s)
	mihv1.RegisterTransportServiceServer(s.grpc, s)
	mihv1.RegisterCommandServiceServer(s.grpc, s)
	mihv1.RegisterInformationServiceServer(s.grpc, s)
	mihv1.RegisterAdminServiceServer(s.grpc, s)
	for name := range s.grpc.GetServiceInfo() {
		s.health.SetServingStatus(name, healthv1.HealthCheckResponse_SERVING)
	}
	healthv1.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	return s, nil
}

func (s *Server) options(creds *callerCreds) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(creds),
		grpc.ForceServerCodecV2(newCodec(func(err error) { s.malformed("any", err) })),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: unanswered}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.MaxConcurrentStreams(s.o.MaxStreams),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxHeaderListSize(maxHeaderList),
		grpc.ConnectionTimeout(10 * time.Second),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.ReadBufferSize(readBuffer),
		grpc.WriteBufferSize(writeBuffer),
		grpc.SharedWriteBuffer(false), //nolint:staticcheck // deprecated, but see the sizes above
		grpc.WaitForHandlers(true),
		grpc.InTapHandle(s.shares.begin),
		grpc.UnaryInterceptor(s.guardUnary),
		grpc.StreamInterceptor(s.guardStream),
	}
}

// String names the task.
func (s *Server) String() string { return "grpc" }

// Ready is closed when the server accepts requests.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Counts returns what the server has done.
func (s *Server) Counts() Counts {
	return Counts{
		Connections:        s.connections.count(),
		RefusedConnections: s.connections.refused.Load(),
		RefusedCalls:       s.shares.refused.Load(),
		AcceptErrors:       s.counts.acceptErrors.Load(),
		Sent:               s.counts.sent.Load(),
		EncodeErrors:       s.counts.encodeErrors.Load(),
		Malformed:          s.counts.malformed.Load(),
		Panics:             s.counts.panics.Load(),
	}
}

// Run serves until ctx ends and returns nil then. Streams are given [Options.Grace] to
// deliver what the broker still says. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	var g errgroup.Group
	for _, ln := range s.o.Listeners {
		g.Go(func() error {
			defer cancel() // one listener that fails ends the others
			err := s.grpc.Serve(boundedListener{Listener: patient.New(ln, s.log, &s.counts.acceptErrors), to: &s.connections})
			if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
				return fmt.Errorf("gRPC front on %v: %w", ln.Addr(), err)
			}
			return nil
		})
	}
	g.Go(func() error {
		<-run.Done()
		s.stop()
		return nil
	})
	close(s.ready)
	err := g.Wait()
	s.readers.Wait()
	return err
}

// stop lets streams end by themselves for a while, then ends them.
func (s *Server) stop() {
	s.health.Shutdown()
	timer := time.AfterFunc(s.o.Grace, func() {
		s.connections.end()
		s.grpc.Stop()
	})
	s.grpc.GracefulStop()
	timer.Stop()
}

// guardUnary keeps a panic in a request from ending the daemon, counts malformed ones, and
// refuses those beyond their caller's share.
func (s *Server) guardUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (resp any, err error) {
	defer s.recovered(info.FullMethod, &err)
	if err := s.shares.check(ctx); err != nil {
		return nil, statusOf(err)
	}
	resp, err = h(ctx, req)
	s.judge(info.FullMethod, err)
	m, ok := resp.(proto.Message)
	if err != nil || !ok {
		return resp, err
	}
	r, err := s.shares.reply(ctx, m)
	if err != nil {
		return nil, statusOf(err)
	}
	return r, nil
}

func (s *Server) guardStream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
	defer s.recovered(info.FullMethod, &err)
	if err := s.shares.check(ss.Context()); err != nil {
		return statusOf(err)
	}
	err = h(srv, ss)
	s.judge(info.FullMethod, err)
	return err
}

// judge counts a request that ended because it was malformed.
func (s *Server) judge(method string, err error) {
	if status.Code(err) == codes.InvalidArgument {
		s.malformed(method, err)
	}
}

// malformed counts a malformed request, and logs the first one of each method.
func (s *Server) malformed(method string, err error) {
	s.counts.malformed.Add(1)
	if _, named := s.named.LoadOrStore(method, true); !named {
		s.log.Warn("malformed request", "method", method, "error", err)
	}
}

func (s *Server) recovered(method string, err *error) {
	if p := recover(); p != nil {
		s.counts.panics.Add(1)
		s.log.Error("panic in a request", "method", method, "panic", p, "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "internal error; see the daemon's log")
	}
}
