package udpencap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mihf.dev/mihf"
	"mihf.dev/transports/dccp"
	"mihf.dev/transports/dccp/dccpnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen starts a listener on loopback.
func listen(t testing.TB, address string, o dccpnet.Options) *dccpnet.Listener {
	t.Helper()
	l, err := Listen(address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func hostOf(l *dccpnet.Listener) string { return l.Addr().(dccpnet.Addr).Host.String() }

// connect returns both ends of a connection.
func connect(t testing.TB, l *dccpnet.Listener, o dccpnet.Options) (client, server *dccpnet.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := Dial(ctx, hostOf(l), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	server, err = l.AcceptDCCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	for _, c := range []*dccpnet.Conn{client, server} {
		if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	return client, server
}

func TestEcho(t *testing.T) {
	for _, host := range []string{"127.0.0.1:0", "[::1]:0"} {
		for _, ccid := range []uint8{2, 3} {
			t.Run(fmt.Sprint(host, " ", ccid), func(t *testing.T) {
				l := listen(t, host, dccpnet.Options{Conn: dccp.Config{SrcPort: 5001}})
				client, server := connect(t, l, dccpnet.Options{Conn: dccp.Config{DstPort: 5001, CCIDs: []uint8{ccid}, Service: 7}})
				if tx, rx := server.CCIDs(); tx != ccid || rx != ccid || server.Service() != 7 {
					t.Errorf("CCIDs %d %d, service %v", tx, rx, server.Service())
				}
				big := bytes.Repeat([]byte{1}, client.MaxData())
				for _, msg := range [][]byte{[]byte("hello"), {}, big} {
					if _, err := client.Write(msg); err != nil {
						t.Fatal(err)
					}
					buf := make([]byte, 2000)
					n, err := server.Read(buf)
					if err != nil || !bytes.Equal(buf[:n], msg) {
						t.Fatalf("server got %d bytes, %v", n, err)
					}
					if _, err := server.Write(buf[:n]); err != nil {
						t.Fatal(err)
					}
					if n, err = client.Read(buf); err != nil || !bytes.Equal(buf[:n], msg) {
						t.Fatalf("client got %d bytes, %v", n, err)
					}
				}
				if _, err := client.Write(make([]byte, len(big)+1)); !errors.Is(err, dccpnet.ErrTooLong) {
					t.Errorf("too long: %v", err)
				}
				if client.RTT() <= 0 {
					t.Error("no RTT")
				}
			})
		}
	}
}

func TestCloseIsSeen(t *testing.T) {
	for _, who := range []string{"client", "server", "both"} {
		t.Run(who, func(t *testing.T) {
			l := listen(t, "127.0.0.1:0", dccpnet.Options{})
			client, server := connect(t, l, dccpnet.Options{})
			if _, err := client.Write([]byte("last")); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 100)
			var wg sync.WaitGroup
			if who != "client" {
				wg.Go(func() { _ = server.Close() })
			}
			if who != "server" {
				wg.Go(func() { _ = client.Close() })
			}
			wg.Wait()
			other := server
			if who == "server" {
				other = client
			}
			for {
				n, err := other.Read(buf)
				if err == nil && n > 0 {
					continue
				}
				if who == "both" && !errors.Is(err, net.ErrClosed) || who != "both" && !errors.Is(err, io.EOF) {
					t.Errorf("read: %v", err)
				}
				break
			}
			if _, err := other.Write(buf); err == nil {
				t.Error("can still write")
			}
		})
	}
}

func TestRefused(t *testing.T) {
	l := listen(t, "127.0.0.1:0", dccpnet.Options{Conn: dccp.Config{SrcPort: 5001}, Services: []dccp.ServiceCode{1}})
	for name, c := range map[string]struct {
		cfg  dccp.Config
		want dccp.ResetCode
	}{
		"port":    {dccp.Config{DstPort: 5002, Service: 1}, dccp.ResetConnectionRefused},
		"service": {dccp.Config{DstPort: 5001, Service: 2}, dccp.ResetBadServiceCode},
	} {
		_, err := Dial(t.Context(), hostOf(l), dccpnet.Options{Conn: c.cfg})
		var reset *dccp.ResetError
		if !errors.As(err, &reset) || reset.Code != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDeadlines(t *testing.T) {
	l := listen(t, "127.0.0.1:0", dccpnet.Options{})
	client, _ := connect(t, l, dccpnet.Options{SendQueue: 4})
	_ = client.SetReadDeadline(time.Now().Add(-time.Second))
	if _, err := client.Read(nil); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	client.Freeze(mihf.Freeze{})
	_ = client.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	var err error
	for range 5 {
		_, err = client.Write([]byte("x"))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write into a full queue: %v", err)
	}
	var ne net.Error
	if !errors.As(err, &ne) || !ne.Timeout() {
		t.Errorf("no timeout by net's measure: %v", err)
	}
	_ = client.SetWriteDeadline(time.Time{})
	client.Unfreeze(mihf.Unfreeze{})
	if _, err := client.Write([]byte("x")); err != nil {
		t.Errorf("after the thaw: %v", err)
	}
}

func TestDialGivesUp(t *testing.T) {
	var lc net.ListenConfig
	silent, err := lc.ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, silent.LocalAddr().String(), dccpnet.Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// What is sent comes in its order over loopback, and only what the receive queue had no
// room for, or the socket, is missing.
func TestBulk(t *testing.T) {
	for _, ccid := range []uint8{2, 3} {
		for _, fromServer := range []bool{false, true} {
			t.Run(fmt.Sprintf("CCID %d, from server %v", ccid, fromServer), func(t *testing.T) {
				l := listen(t, "127.0.0.1:0", dccpnet.Options{ReceiveQueue: 4096})
				from, to := connect(t, l, dccpnet.Options{ReceiveQueue: 4096, Linger: 20 * time.Second, Conn: dccp.Config{CCIDs: []uint8{ccid}}})
				if fromServer {
					from, to = to, from
				}
				const n = 4000
				var wg sync.WaitGroup
				wg.Go(func() {
					for i := range n {
						if _, err := fmt.Fprintf(from, "%08d", i); err != nil {
							t.Errorf("write %d: %v", i, err)
							break
						}
					}
					_ = from.Close()
				})
				count, last := 0, -1
				buf := make([]byte, 100)
				for {
					k, err := to.Read(buf)
					if errors.Is(err, io.EOF) {
						break
					}
					i := 0
					if err != nil {
						t.Fatalf("read: %v", err)
					}
					if _, err := fmt.Sscanf(string(buf[:k]), "%d", &i); err != nil || i <= last {
						t.Fatalf("%q after %d", buf[:k], last)
					}
					last = i
					count++
				}
				wg.Wait()
				if count < n*9/10 {
					t.Errorf("%d of %d came; sender %+v, receiver %+v", count, n, from.Stats(), to.Stats())
				}
			})
		}
	}
}

// Many connections on one listener, 10,000 with MIHF_FULL=1, each idle one in no more than
// 64 KiB at both ends together, sockets included.
func TestManyConnections(t *testing.T) {
	n := 1000
	if os.Getenv("MIHF_FULL") != "" {
		n = 10_000
	}
	l := listen(t, "127.0.0.1:0", dccpnet.Options{Backlog: n})
	// One client's endpoint of its own each would need as many sockets.
	d, err := NewDialer("127.0.0.1:0", dccpnet.Options{Conn: dccp.Config{Keepalive: -1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	conns := make([]*dccpnet.Conn, n)
	var wg sync.WaitGroup
	for part := range 8 {
		wg.Go(func() {
			for i := part; i < n; i += 8 {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				c, err := d.Dial(ctx, hostOf(l), 5001)
				cancel()
				if err != nil {
					t.Errorf("connection %d: %v", i, err)
					return
				}
				conns[i] = c
			}
		})
	}
	servers := make([]*dccpnet.Conn, 0, n)
	wg.Go(func() {
		for len(servers) < n && !t.Failed() {
			c, err := l.AcceptDCCP()
			if err != nil {
				return
			}
			servers = append(servers, c)
		}
	})
	wg.Wait()
	if t.Failed() {
		return
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := int(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse) / n
	t.Logf("%d connections, %d bytes each at both ends", n, used)
	if used > 64<<10 {
		t.Errorf("%d bytes a connection", used)
	}
	eachReads(t, conns, servers)
}

// eachReads has something come on each connection. Datagrams are lost where the sockets'
// buffers are full, and DCCP sends none again, so that all is written until all have read.
func eachReads(t *testing.T, conns, servers []*dccpnet.Conn) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for tick := time.NewTicker(200 * time.Millisecond); ; {
			for _, c := range conns {
				_, _ = fmt.Fprint(c, "still there")
			}
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	})
	buf := make([]byte, 20)
	for i, s := range servers {
		_ = s.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := s.Read(buf); err != nil {
			t.Errorf("connection %d: %v", i, err)
			break
		}
	}
	close(done)
	wg.Wait()
}
