package wifi

import (
	"context"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// A tcpFlow is the kernel's plain TCP from behind the access point to a station. Nobody tells
// it anything.
type tcpFlow struct {
	done sync.WaitGroup

	mu   sync.Mutex // guards the following
	outs []sentBy
	got  []mihf.Time // when data came
}

// sentBy is how many segments the sender had sent by a moment.
type sentBy struct {
	at       mihf.Time
	segments uint32
}

// tcp starts a flow to a lane, until ctx ends.
func (d *daemon) tcp(ctx context.Context, l *lane) *tcpFlow {
	d.t.Helper()
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		if failed := raw.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), l.name) }); failed != nil {
			return failed
		}
		return err
	}}
	listener, err := config.Listen(ctx, "tcp4", l.near()+":0")
	if err != nil {
		d.t.Fatal(err)
	}
	var sender net.Conn
	err = d.far.Do(func() (err error) {
		dialer := net.Dialer{Timeout: patience}
		sender, err = dialer.DialContext(ctx, "tcp4", listener.Addr().String())
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	receiver, err := listener.Accept()
	if err != nil {
		d.t.Fatal(err)
	}
	f := &tcpFlow{}
	f.done.Go(func() { f.receive(receiver) })
	f.done.Go(func() { f.send(sender) })
	f.done.Go(func() { f.count(ctx, sender.(*net.TCPConn)) })
	f.done.Go(func() {
		<-ctx.Done()
		_ = listener.Close()
		_ = sender.(*net.TCPConn).SetLinger(0) // what waits is given up
		_ = sender.Close()
		_ = receiver.Close()
	})
	return f
}

func (f *tcpFlow) wait() { f.done.Wait() }

func (f *tcpFlow) send(c io.Writer) {
	packet := make([]byte, 500)
	for {
		if _, err := c.Write(packet); err != nil {
			return
		}
		time.Sleep(streamEvery)
	}
}

func (f *tcpFlow) receive(c io.Reader) {
	b := make([]byte, 4096)
	for {
		if _, err := c.Read(b); err != nil {
			return
		}
		now := clock.Boot().Now()
		f.mu.Lock()
		f.got = append(f.got, now)
		f.mu.Unlock()
	}
}

// count asks the kernel how many segments it has sent.
func (f *tcpFlow) count(ctx context.Context, c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	tick := time.NewTicker(streamEvery)
	defer tick.Stop()
	for {
		var info *unix.TCPInfo
		if raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }) != nil || err != nil {
			return // it is closed
		}
		f.mu.Lock()
		f.outs = append(f.outs, sentBy{clock.Boot().Now(), info.Segs_out})
		f.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// between is how many segments it sent within a time.
func (f *tcpFlow) between(from, to mihf.Time) int { return f.after(from) - f.after(to) }

// firstAfter is when data was received first after a moment.
func (f *tcpFlow) firstAfter(moment mihf.Time) mihf.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return firstAfter(f.got, moment)
}

// after is how many segments it sent after a moment.
func (f *tcpFlow) after(moment mihf.Time) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := uint32(0)
	for _, o := range f.outs {
		if o.at > moment {
			break
		}
		before = o.segments
	}
	return int(f.outs[len(f.outs)-1].segments - before)
}
