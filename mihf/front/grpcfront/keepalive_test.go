package grpcfront

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/test/bufconn"
)

// TestPings: clients may probe every 5 s, also without a stream, and are not told to go
// away for it (report G02); those that probe more often are.
func TestPings(t *testing.T) {
	for _, tt := range []struct {
		every   time.Duration
		allowed bool
	}{{5 * time.Second, true}, {10 * time.Second, true}, {2 * time.Second, false}} {
		t.Run(tt.every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPinger(t)
				const length = 5 * time.Minute
				sent := 0
				for ; p.goAway == nil && time.Duration(sent)*tt.every < length; sent++ {
					time.Sleep(tt.every)
					p.ping()
				}
				switch {
				case tt.allowed && (p.goAway != nil || p.answers != sent):
					t.Errorf("%d of %d answered in %v, told to go away: %v", p.answers, sent, length, p.goAway)
				case !tt.allowed && (p.goAway == nil || p.goAway.ErrCode != http2.ErrCodeEnhanceYourCalm):
					t.Errorf("after %d probes: %v, want to be told to calm down", sent, p.goAway)
				}
			})
		})
	}
}

// pinger is a client that speaks HTTP/2 frames.
type pinger struct {
	t       *testing.T
	frames  *http2.Framer
	answers int // to pings
	goAway  *http2.GoAwayFrame
}

// newPinger connects to a server of its own until the test ends. All of it belongs to the
// caller's bubble.
func newPinger(t *testing.T) *pinger {
	t.Helper()
	ca := newAuthority(t)
	ln := bufconn.Listen(16 << 10)
	s, err := New(Options{Broker: newFake(), Listeners: []net.Listener{ln}, TLS: &tls.Config{
		Certificates: []tls.Certificate{ca.keyPair(t, "broker")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool,
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	raw, err := ln.DialContext(ctx)
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, &tls.Config{
		Certificates: []tls.Certificate{ca.keyPair(t, "client")}, RootCAs: ca.pool, ServerName: "127.0.0.1", NextProtos: []string{"h2"},
	})
	t.Cleanup(func() {
		_ = conn.Close() // the server may have closed it
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	p := &pinger{t: t, frames: http2.NewFramer(conn, conn)}
	if err := p.frames.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	go p.read()
	synctest.Wait()
	return p
}

// read takes what the server sends. Its results may be looked at behind synctest.Wait.
func (p *pinger) read() {
	for {
		f, err := p.frames.ReadFrame()
		if err != nil {
			return // closed by either side
		}
		switch f := f.(type) {
		case *http2.PingFrame:
			if f.IsAck() {
				p.answers++
			}
		case *http2.GoAwayFrame:
			away := *f
			p.goAway = &away
		}
	}
}

func (p *pinger) ping() {
	p.t.Helper()
	err := p.frames.WritePing(false, [8]byte{1})
	synctest.Wait()
	if err != nil && !errors.Is(err, io.ErrClosedPipe) && p.goAway == nil {
		p.t.Fatal(err)
	}
}
