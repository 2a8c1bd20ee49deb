package udpencap

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mihf.dev/transports/dccp"
	"mihf.dev/transports/dccp/dccpnet"
)

// BenchmarkThroughput moves datagrams over loopback: on a connection with CCID 2, and
// between two bare sockets with the same batches, which are held to what the receiver
// takes without loss. One operation is one datagram received.
func BenchmarkThroughput(b *testing.B) {
	for _, size := range []int{1400, 500} {
		b.Run(fmt.Sprintf("dccp/%dB", size), func(b *testing.B) { benchDCCP(b, size) })
		b.Run(fmt.Sprintf("bare/%dB", size), func(b *testing.B) { benchBare(b, size) })
	}
}

func benchDCCP(b *testing.B, size int) {
	b.Helper()
	o := dccpnet.Options{
		Conn: dccp.Config{CCIDs: []uint8{2}, SequenceWindow: 1 << 16, Keepalive: -1}, ReceiveQueue: 4096, SendQueue: 1024,
	}
	l := listen(b, "127.0.0.1:0", o)
	client, server := connect(b, l, o)
	_ = client.SetDeadline(time.Time{})
	_ = server.SetDeadline(time.Time{})
	var wg sync.WaitGroup
	var stop atomic.Bool
	wg.Go(func() {
		for data := make([]byte, size); !stop.Load(); {
			if _, err := client.Write(data); err != nil {
				return
			}
		}
	})
	buf := make([]byte, 2000)
	for range 20000 { // past slow-start
		if _, err := server.Read(buf); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := server.Read(buf); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
	s := client.Stats()
	b.ReportMetric(float64(s.DataLost)/float64(s.DataSent), "lost/packet")
	b.ReportMetric(float64(server.Stats().Overflow), "overflow")
	stop.Store(true)
	client.Abort()
	wg.Wait()
}

func benchBare(b *testing.B, size int) {
	b.Helper()
	loopback := netip.MustParseAddrPort("127.0.0.1:0")
	from, err := open(context.Background(), loopback)
	if err != nil {
		b.Fatal(err)
	}
	to, err := open(context.Background(), loopback)
	if err != nil {
		b.Fatal(err)
	}
	var sent, got atomic.Int64
	var wg sync.WaitGroup
	var stop atomic.Bool
	wg.Go(func() { _ = to.Read(func(netip.AddrPort, []byte) { got.Add(1) }, func() {}) })
	batch := 62 << 10 / size
	data := make([]byte, batch*size)
	lengths := make([]int, batch)
	for i := range lengths {
		lengths[i] = size
	}
	wg.Go(func() {
		for !stop.Load() {
			if sent.Load()-got.Load() > 1000 {
				runtime.Gosched()
				continue
			}
			n, err := from.Write(to.LocalAddr(), data, lengths)
			if err != nil {
				return
			}
			sent.Add(int64(n))
		}
	})
	b.ReportAllocs()
	b.ResetTimer()
	for start := got.Load(); got.Load()-start < int64(b.N); {
		runtime.Gosched()
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
	stop.Store(true)
	_ = from.Close()
	_ = to.Close()
	wg.Wait()
}
