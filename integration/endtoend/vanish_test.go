package endtoend

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"mihf.dev/clients/mihgrpc"
	"mihf.dev/integration/daemons"
	"mihf.dev/mihf"
)

// goneWithin is how long the daemon may keep what belongs to a client that vanished.
const goneWithin = 35 * time.Second

// TestVanishedPeer: clients on TCP vanish without a word, one that hears nothing anyway and
// one that everything is sent to. Their streams, and with those their places in the log, are
// freed, their connections end in the kernel too, and no goroutine stays (report G01).
func TestVanishedPeer(t *testing.T) {
	t.Parallel() // it mostly waits
	pems := t.TempDir()
	cert, key := daemons.Identity(t, pems, "daemon", "192.0.2.2")
	clientCert, clientKey := daemons.Identity(t, pems, "far", "192.0.2.3")
	b := newBedWith(t, bedConfig{
		grpc: fmt.Sprintf("listen = \"192.0.2.2:4552\"\ncert = %q\nkey = %q\nclient_ca = %q\n", cert, key, clientCert),
		rest: "[metrics]\nlisten = \"127.0.0.1:9452\"\n",
	})
	b.online()
	b.hub()
	far := b.host(3)
	tlsConfig := clientTLS(t, clientCert, clientKey, cert)
	streams, goroutines := b.subscribers(), b.goroutines()
	for _, kinds := range []mihf.KindSet{mihf.Kinds(mihf.LinkRemoved), 0} {
		c, err := mihgrpc.Dial("192.0.2.2:4552", mihgrpc.Options{TLS: tlsConfig, Dial: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dialIn(ctx, far, addr) })}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		feed, err := c.Follow(t.Context(), mihf.SubscribeRequest{Kinds: kinds})
		if err != nil {
			t.Fatal(err)
		}
		defer feed.Close()
		if _, err := feed.Next(make([]mihf.Delivery, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.subscribers(); got != streams+2 {
		t.Fatalf("%d subscribers, want %d", got, streams+2)
	}
	for open, queued := b.connections(); open != 2 || queued > 0; open, queued = b.connections() {
		time.Sleep(time.Millisecond) // until the far kernel has acknowledged all, as it does within 40 ms
	}
	far.Down("e0") // the node's own link stays up
	begin := time.Now()
	for i := 0; ; i++ {
		s, g := b.subscribers(), b.goroutines()
		open, _ := b.connections()
		if s <= streams && g <= goroutines && open == 0 {
			break
		}
		if took := time.Since(begin); took > goneWithin {
			t.Fatalf("after %v: %d subscribers, %d before; %d goroutines, %d before; %d connections in the kernel", took, s, streams, g, goroutines, open)
		}
		b.node.AddAddr("v0", fmt.Sprintf("10.0.%d.%d/32", i/250, i%250), 0, 0) // an event for the busy one
		time.Sleep(200 * time.Millisecond)
	}
	t.Logf("all is freed after %v", time.Since(begin))
}

func clientTLS(t *testing.T, cert, key, ca string) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool}
}

func (b *bed) subscribers() int {
	b.t.Helper()
	s, err := b.client.Status(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return s.Subscribers
}

// goroutines asks the daemon's metrics, which the bed's configuration has on port 9452.
func (b *bed) goroutines() int {
	b.t.Helper()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, addr string) (net.Conn, error) { return dialIn(ctx, b.node, addr) },
	}}
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, "http://127.0.0.1:9452/metrics", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "go_goroutines "); ok {
			n, err := strconv.Atoi(value)
			if err != nil {
				b.t.Fatal(err)
			}
			return n
		}
	}
	b.t.Fatal("the metrics have no go_goroutines")
	return 0
}

// connections counts the node's TCP connections to the far namespace, whatever their state,
// and those of them with bytes that are not acknowledged.
func (b *bed) connections() (open, queued int) {
	b.t.Helper()
	for _, c := range tcp(b.t, b.node) {
		if strings.HasPrefix(c.remote, addressOf(3)+":") {
			open++
			if c.queued > 0 {
				queued++
			}
		}
	}
	return open, queued
}

// TestResultsPings holds a connection without a stream to the daemon for 5 minutes, and
// probes it as often as gRPC's client can: the daemon doesn't tell it to go away (report
// G02). Without MIHF_FULL the gRPC front's own test does this, in virtual time.
func TestResultsPings(t *testing.T) {
	if os.Getenv("MIHF_FULL") == "" {
		t.Skip("MIHF_FULL is not set: only make results measures for minutes")
	}
	b := newBed(t, "")
	conn, err := grpc.NewClient("unix://"+b.socket(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithIdleTimeout(0),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Connect()
	for s := conn.GetState(); s != connectivity.Ready; s = conn.GetState() {
		conn.WaitForStateChange(t.Context(), s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if conn.WaitForStateChange(ctx, connectivity.Ready) {
		t.Errorf("the connection is %v; the daemon ended it", conn.GetState())
	}
}
