package dccp

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// BenchmarkMachines is what both ends of a connection take for a datagram, Acks included.
func BenchmarkMachines(b *testing.B) {
	for _, ccid := range []uint8{2, 3} {
		for _, size := range []int{100, 1180} {
			b.Run(fmt.Sprintf("ccid%d/%dB", ccid, size), func(b *testing.B) {
				p := newPair(b, Config{CCIDs: []uint8{ccid}, SequenceWindow: 1 << 20}, Config{SequenceWindow: 1 << 20}).open()
				bench(b, p, size)
			})
		}
	}
}

// cpuTime is what this process has had of the processors: on a busy machine it says more
// than the clock.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bench moves b.N datagrams over a path of 1 ms without loss.
func bench(b *testing.B, p *pair, size int) {
	b.Helper()
	data := make([]byte, size)
	tx, rx := p.client.conn, p.server.conn
	now := p.now
	buf := make([]byte, 0, 1500)
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime(b)
	got := 0
	for got < b.N {
		for range 64 {
			out, took := tx.Poll(now, buf, data, true)
			if len(out) == 0 {
				break
			}
			_ = took
			if _, ok := rx.Receive(now, out); ok {
				got++
			}
		}
		now = now.Add(time.Millisecond)
		for { // one Ack for a batch, as a shell that reads batches has it
			out, _ := rx.Poll(now, buf, nil, false)
			if len(out) == 0 {
				break
			}
			tx.Receive(now, out)
		}
		for _, c := range []*Conn{tx, rx} {
			if c.Next().Due(now) {
				c.Advance(now)
			}
		}
		if tx.State() != StateOpen {
			b.Fatal(tx.State(), tx.Err(), rx.Err())
		}
	}
	p.now = now
	b.ReportMetric(float64(got)/(cpuTime(b)-cpu).Seconds(), "packets/cpu-s")
}
