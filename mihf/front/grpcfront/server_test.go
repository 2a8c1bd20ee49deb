package grpcfront

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front"
	mihv1 "mihf.dev/proto/mih/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a server over b on a unix socket until the test ends and returns it, its
// socket, and a function that ends it.
func serve(t *testing.T, b front.Broker, o Options) (s *Server, path string, stop func()) {
	t.Helper()
	path = filepath.Join(socketDir(t), "s")
	o.Broker, o.Listeners = b, append(o.Listeners, listenUnix(t, path))
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	<-s.Ready()
	return s, path, stop
}

func dial(t *testing.T, path string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+path, append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func wantCode(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%s: %v (%v), want %v", what, got, err, want)
	}
}

// as connects with the credentials of another user; SO_PEERCRED has those at connect.
func as(uid int) grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		type result struct {
			c   net.Conn
			err error
		}
		ch := make(chan result)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(uid), uintptr(uid), 0); e != 0 {
				ch <- result{nil, e}
				return
			}
			var d net.Dialer
			c, err := d.DialContext(ctx, "unix", strings.TrimPrefix(addr, "unix://"))
			ch <- result{c, err}
		}()
		r := <-ch
		return r.c, r.err
	})
}

func TestCallerIsFromTheKernel(t *testing.T) {
	b := newFake()
	_, path, _ := serve(t, b, Options{})
	if _, err := mihv1.NewAdminServiceClient(dial(t, path)).Status(t.Context(), &mihv1.StatusRequest{}); err != nil {
		t.Fatal(err)
	}
	want := mihf.Caller{Front: "grpc", UID: mihf.Some(uint32(os.Getuid())), GID: mihf.Some(uint32(os.Getgid())), PID: os.Getpid()}
	if got := b.lastCaller(); got != want {
		t.Errorf("caller %+v, want %+v", got, want)
	}
	if os.Getuid() != 0 {
		t.Skip("needs root to connect as another user")
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := mihv1.NewAdminServiceClient(dial(t, path, as(4242))).Status(t.Context(), &mihv1.StatusRequest{}); err != nil {
		t.Fatal(err)
	}
	if uid, _ := b.lastCaller().UID.Get(); uid != 4242 {
		t.Errorf("uid %d, want 4242", uid)
	}
}

// Every refusal of the broker gets a status that says what and why.
func TestRefusalsHaveCodes(t *testing.T) {
	for err, want := range map[error]codes.Code{
		mihf.ErrPermission: codes.PermissionDenied, mihf.ErrNotFound: codes.NotFound, mihf.ErrInvalid: codes.InvalidArgument,
		mihf.ErrLimit: codes.ResourceExhausted, mihf.ErrExists: codes.AlreadyExists, mihf.ErrClosed: codes.Unavailable,
		mihf.ErrSlow: codes.Aborted, errors.New("odd"): codes.Internal,
	} {
		b := newFake()
		b.err = fmt.Errorf("%w: because", err)
		_, path, _ := serve(t, b, Options{})
		conn := dial(t, path)
		admin, command, events := mihv1.NewAdminServiceClient(conn), mihv1.NewCommandServiceClient(conn), mihv1.NewEventServiceClient(conn)
		_, err := admin.Status(t.Context(), &mihv1.StatusRequest{})
		wantCode(t, "Status", err, want)
		if got := status.Convert(err).Message(); got != b.err.Error() {
			t.Errorf("message %q, want %q", got, b.err)
		}
		_, err = admin.Explain(t.Context(), &mihv1.ExplainRequest{PredictionId: "00000001-1"})
		wantCode(t, "Explain", err, want)
		_, err = command.GetParameters(t.Context(), &mihv1.GetParametersRequest{Link: "wifi-00000001"})
		wantCode(t, "GetParameters", err, want)
		_, err = command.ConfigureThresholds(t.Context(), &mihv1.ConfigureThresholdsRequest{Link: "wifi-00000001"})
		wantCode(t, "ConfigureThresholds", err, want)
		_, err = events.GetSnapshot(t.Context(), &mihv1.GetSnapshotRequest{})
		wantCode(t, "GetSnapshot", err, want)
		sub, err := events.Subscribe(t.Context(), &mihv1.SubscribeRequest{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = sub.Recv()
		wantCode(t, "Subscribe", err, want)
		rec, err := admin.Record(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = rec.Recv()
		wantCode(t, "Record", err, want)
		at, err := mihv1.NewTransportServiceClient(conn).Attach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = at.Recv()
		wantCode(t, "Attach", err, want)
	}
}

// A bad request is refused before the broker sees it; "a malformed one is counted, and named
// in the log once a method".
func TestBadRequests(t *testing.T) {
	var log bytes.Buffer
	s, path, stop := serve(t, newFake(), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	conn := dial(t, path)
	command := mihv1.NewCommandServiceClient(conn)
	_, err := command.GetParameters(t.Context(), &mihv1.GetParametersRequest{})
	wantCode(t, "no link", err, codes.InvalidArgument)
	_, err = command.ConfigureThresholds(t.Context(), &mihv1.ConfigureThresholdsRequest{Link: "wifi-00000001", Items: []*mihv1.ThresholdConfig{{}}})
	wantCode(t, "no parameter", err, codes.InvalidArgument)
	_, err = mihv1.NewAdminServiceClient(conn).Explain(t.Context(), &mihv1.ExplainRequest{PredictionId: "x"})
	wantCode(t, "prediction id", err, codes.InvalidArgument)
	_, err = command.GetParameters(t.Context(), &mihv1.GetParametersRequest{Link: string(make([]byte, maxRequest))})
	wantCode(t, "too long", err, codes.ResourceExhausted)
	sub, err := mihv1.NewEventServiceClient(conn).Subscribe(t.Context(), &mihv1.SubscribeRequest{BootId: "x"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = sub.Recv()
	wantCode(t, "boot id", err, codes.InvalidArgument)
	at, err := mihv1.NewTransportServiceClient(conn).Attach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := at.Send(&mihv1.AttachRequest{}); err != nil {
			t.Fatal(err)
		}
		if p, err := at.Recv(); err != nil || p.GetFailed() == nil {
			t.Fatalf("%v, %v", p, err)
		}
	}
	err = conn.Invoke(t.Context(), mihv1.CommandService_GetParameters_FullMethodName, &mihv1.GetParametersRequest{}, nil, grpc.ForceCodecV2(nonsense{newCodec(nil)}))
	wantCode(t, "nonsense", err, codes.Internal)
	stop()
	if got := s.Counts().Malformed; got != 7 {
		t.Errorf("%d malformed, want 7", got)
	}
	for _, method := range []string{"GetParameters", "ConfigureThresholds", "Explain", "Subscribe", "Attach", "any"} {
		if n := strings.Count(log.String(), method+" error="); n != 1 {
			t.Errorf("%s is logged %d times:\n%s", method, n, log.String())
		}
	}
}

// nonsense sends octets that are no message.
type nonsense struct{ codec }

func (nonsense) Marshal(any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer("\xff")}, nil
}

// A slow subscriber sees why it was closed.
func TestSlowIsAborted(t *testing.T) {
	b := newFake()
	_, path, _ := serve(t, b, Options{})
	sub, err := mihv1.NewEventServiceClient(dial(t, path)).Subscribe(t.Context(), &mihv1.SubscribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	feed := <-b.opened
	feed.items <- mihf.Delivery{Previous: 4, Conflated: 2, Kind: mihf.DeliverEvent, Event: mihf.Event{Boot: 1, Sequence: 7, Kind: mihf.LinkUp, At: 900}}
	p, err := sub.Recv()
	if err != nil || p.GetPrevious() != 4 || p.GetConflated() != 2 || p.GetEvent().GetSequence() != 7 || p.GetEvent().GetAge().AsDuration() != 100 {
		t.Fatalf("%v, %v", p, err)
	}
	feed.finish(fmt.Errorf("%w: fell 99 items behind", mihf.ErrSlow))
	_, err = sub.Recv()
	wantCode(t, "slow", err, codes.Aborted)
}

// An answer to a registration comes before the flow's hints; failures name their request.
func TestAttachAnswers(t *testing.T) {
	b := newFake()
	_, path, _ := serve(t, b, Options{})
	at, err := mihv1.NewTransportServiceClient(dial(t, path)).Attach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(p *mihv1.AttachRequest) {
		t.Helper()
		if err := at.Send(p); err != nil {
			t.Fatal(err)
		}
	}
	get := func() *mihv1.AttachResponse {
		t.Helper()
		p, err := at.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for range 50 {
		ask(&mihv1.AttachRequest{RequestId: 7, Request: &mihv1.AttachRequest_Register{Register: &mihv1.FlowSpec{}}})
		if p := get(); p.GetRegistered().GetFlow() != "F" || p.GetRequestId() != 7 {
			t.Fatalf("%v, want the registration first", p)
		}
		if p := get(); p.GetHint().GetFreeze() == nil || p.GetRequestId() != 0 {
			t.Fatalf("%v, want the hint", p)
		}
	}
	ask(&mihv1.AttachRequest{RequestId: 1, Request: &mihv1.AttachRequest_Ack{Ack: &mihv1.Ack{Flow: "F", Epoch: 1, Result: 1}}}) // not answered
	ask(&mihv1.AttachRequest{RequestId: 2, Request: &mihv1.AttachRequest_Ack{Ack: &mihv1.Ack{Flow: "F", Epoch: 9, Result: 1}}})
	ask(&mihv1.AttachRequest{RequestId: 3, Request: &mihv1.AttachRequest_Unregister{Unregister: &mihv1.Unregister{Flow: "G"}}})
	ask(&mihv1.AttachRequest{RequestId: 4, Request: &mihv1.AttachRequest_Update{Update: &mihv1.FlowUpdate{Flow: "F"}}})
	ask(&mihv1.AttachRequest{RequestId: 5, Request: &mihv1.AttachRequest_Update{Update: &mihv1.FlowUpdate{}}})
	ask(&mihv1.AttachRequest{RequestId: 6})
	for _, want := range []struct {
		id     uint64
		reason mihv1.FailedReason
	}{
		{2, mihv1.FailedReason_FAILED_REASON_NOT_FOUND},
		{3, mihv1.FailedReason_FAILED_REASON_NOT_FOUND},
		{4, 0},
		{5, mihv1.FailedReason_FAILED_REASON_INVALID},
		{6, mihv1.FailedReason_FAILED_REASON_INVALID},
	} {
		p := get()
		if p.GetRequestId() != want.id || p.GetFailed().GetReason() != want.reason || (want.reason == 0) != (p.GetDone() != nil) {
			t.Errorf("%v, want an answer to %d with %v", p, want.id, want.reason)
		}
	}
	if err := at.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if p, err := at.Recv(); err == nil {
		t.Errorf("%v after the end of requests", p)
	}
	if <-b.feeds[0].Done(); b.feeds[0].Err() == nil {
		t.Error("the attachment must end with its requests")
	}
}

func TestRecordSaysWhatItLost(t *testing.T) {
	_, path, _ := serve(t, newFake(), Options{})
	rec, err := mihv1.NewAdminServiceClient(dial(t, path)).Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := rec.Recv()
	if err != nil || !p.GetObservation().GetScan().GetScanning() {
		t.Fatalf("%v, %v", p, err)
	}
	if err := rec.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if p, err = rec.Recv(); err != nil || p.GetLost() != 3 {
		t.Fatalf("%v, %v, want 3 lost", p, err)
	}
}

func TestPanicEndsOneRequest(t *testing.T) {
	b := newFake()
	b.panic = true
	s, path, _ := serve(t, b, Options{})
	conn := dial(t, path)
	_, err := mihv1.NewAdminServiceClient(conn).Status(t.Context(), &mihv1.StatusRequest{})
	wantCode(t, "panic", err, codes.Internal)
	if _, err := mihv1.NewEventServiceClient(conn).GetSnapshot(t.Context(), &mihv1.GetSnapshotRequest{}); err != nil {
		t.Errorf("the next request: %v", err)
	}
	if got := s.Counts().Panics; got != 1 {
		t.Errorf("%d panics counted", got)
	}
}

// Streams that do not end by themselves end with the grace.
func TestRunEndsWithinGrace(t *testing.T) {
	b := newFake()
	_, path, stop := serve(t, b, Options{Grace: time.Millisecond})
	conn := dial(t, path)
	sub, err := mihv1.NewEventServiceClient(conn).Subscribe(t.Context(), &mihv1.SubscribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	at, err := mihv1.NewTransportServiceClient(conn).Attach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	<-b.opened
	<-b.opened
	stop()
	_, err = sub.Recv()
	wantCode(t, "Subscribe", err, codes.Unavailable)
	_, err = at.Recv()
	wantCode(t, "Attach", err, codes.Unavailable)
}

// A peer that connected and never spoke does not hold up the end either.
func TestRunEndsWithSilentPeer(t *testing.T) {
	s, path, stop := serve(t, newFake(), Options{Grace: time.Millisecond})
	silent, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for s.Counts().Connections == 0 {
		runtime.Gosched()
	}
	stop()
	if _, err := silent.Read(make([]byte, 4096)); err == nil {
		_, err = io.ReadAll(silent) // the server's settings may come first
		if err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
	}
}

// What the broker still says when it ends is delivered.
func TestLastWordsAreDelivered(t *testing.T) {
	b := newFake()
	_, path, stop := serve(t, b, Options{Grace: time.Hour})
	sub, err := mihv1.NewEventServiceClient(dial(t, path)).Subscribe(t.Context(), &mihv1.SubscribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	feed := <-b.opened
	go stop()
	feed.items <- mihf.Delivery{Kind: mihf.DeliverHint, Hint: mihf.Hint{Sequence: 9, Boot: 1, Flow: "F", Epoch: 1, Kind: mihf.HintUnfreeze, At: 900}}
	if p, err := sub.Recv(); err != nil || p.GetHint().GetUnfreeze() == nil {
		t.Errorf("%v, %v", p, err)
	}
	feed.finish(mihf.ErrClosed)
	_, err = sub.Recv()
	wantCode(t, "the end", err, codes.Unavailable)
	stop()
}

func TestConnectionsAreBounded(t *testing.T) {
	s, path, _ := serve(t, newFake(), Options{MaxConnections: 1})
	first := dial(t, path)
	if _, err := mihv1.NewAdminServiceClient(first).Status(t.Context(), &mihv1.StatusRequest{}); err != nil {
		t.Fatal(err)
	}
	_, err := mihv1.NewAdminServiceClient(dial(t, path)).Status(t.Context(), &mihv1.StatusRequest{})
	wantCode(t, "a second connection", err, codes.Unavailable)
	if c := s.Counts(); c.Connections != 1 || c.RefusedConnections == 0 {
		t.Errorf("counts %+v", c)
	}
}

func TestHealthAndReflection(t *testing.T) {
	_, path, _ := serve(t, newFake(), Options{})
	conn := dial(t, path)
	for _, name := range []string{"", "mih.v1.EventService", "mih.v1.TransportService", "mih.v1.CommandService", "mih.v1.AdminService"} {
		r, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: name})
		if err != nil || r.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v", name, r, err)
		}
	}
	info, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := info.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	r, err := info.Recv()
	if err != nil || len(r.GetListServicesResponse().GetService()) < 5 {
		t.Errorf("reflection: %v, %v", r, err)
	}
	_ = info.CloseSend()
	_, _ = info.Recv()
}
