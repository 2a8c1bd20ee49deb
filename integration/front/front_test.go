package front

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"mihf.dev/clients"
	"mihf.dev/clients/mihgrpc"
	"mihf.dev/mihf"
	"mihf.dev/mihf/front"
	"mihf.dev/mihf/front/grpcfront"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestInProcess(t *testing.T) {
	Run(t, Front{Name: "inproc", Serve: func(_ *testing.T, b front.Broker) func(*testing.T, uint32) clients.Client {
		return func(_ *testing.T, uid uint32) clients.Client {
			return InProcess{Broker: b, Caller: mihf.Caller{Front: "inproc", UID: mihf.Some(uid)}}
		}
	}})
}

func TestGRPC(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("unsupported: connecting as several users needs root")
	}
	Run(t, Front{Name: "grpc", Serve: serveGRPC})
}

func serveGRPC(t *testing.T, b front.Broker) func(*testing.T, uint32) clients.Client {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // other users connect too
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	ln, err := grpcfront.ListenUnix(path, 0o666, "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := grpcfront.New(grpcfront.Options{Broker: b, Listeners: []net.Listener{ln}})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, s.Run)
	<-s.Ready()
	return func(t *testing.T, uid uint32) clients.Client {
		t.Helper()
		c, err := mihgrpc.Dial("unix://"+path, mihgrpc.Options{Dial: []grpc.DialOption{as(uid)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

// as connects with the credentials of another user; SO_PEERCRED has those at connect.
func as(uid uint32) grpc.DialOption {
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
