package wifi

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"mihf.dev/clients/attach"
	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// A stream is UDP from a far sender over the air to a station. Its way has a delay of half an
// RTT each way behind the access point. The station can have the sender stopped: what a hint
// says takes half an RTT to get there, and what was sent until then is still on its way.
type stream struct {
	near, far *net.UDPConn
	rtt       time.Duration
	done      sync.WaitGroup

	mu      sync.Mutex  // guards the following
	aired   []mihf.Time // when each packet got to the access point
	stopped bool
	held    bool        // the station was told to freeze
	frozen  mihf.Time   // when it was told so last; 0: never
	got     []mihf.Time // when each one came
}

const streamEvery = 20 * time.Millisecond

// stream starts one to a lane, until ctx ends.
func (d *daemon) stream(ctx context.Context, l *lane) *stream {
	d.t.Helper()
	s := &stream{near: d.datagrams(ctx, l, false), far: d.datagrams(ctx, l, true), rtt: l.rtt}
	s.done.Go(s.receive)
	s.done.Go(s.obey)
	s.done.Go(func() { s.send(ctx) })
	return s
}

// hinted attaches the stream to the broker until ctx ends.
func (s *stream) hinted(ctx context.Context, d *daemon, l *lane) {
	d.t.Helper()
	flow := attach.New(s, d.client(), attach.Options{Spec: mihf.FlowSpec{Link: l.link, Direction: mihf.DirectionReceive}})
	s.done.Go(func() {
		if err := flow.Run(ctx); err != nil {
			d.t.Error(err)
		}
	})
	taken(d.t, "the flow's registration", flow.Ready())
}

// wait returns when all is at its end.
func (s *stream) wait() { s.done.Wait() }

func (s *stream) send(ctx context.Context) {
	tick := time.NewTicker(streamEvery)
	defer tick.Stop()
	to := s.near.LocalAddr()
	var under sync.WaitGroup
	defer func() {
		under.Wait()
		_ = s.near.Close() // ends the readers
		_ = s.far.Close()
	}()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		stopped := s.stopped
		s.mu.Unlock()
		if stopped {
			continue
		}
		under.Add(1)
		time.AfterFunc(s.rtt/2, func() {
			defer under.Done()
			s.mu.Lock()
			defer s.mu.Unlock()
			packet := binary.BigEndian.AppendUint32(nil, uint32(len(s.aired)))
			s.aired = append(s.aired, clock.Boot().Now())
			_, _ = s.far.WriteTo(append(packet, make([]byte, 200)...), to) // a full queue refuses it: lost
		})
	}
}

func (s *stream) receive() {
	b := make([]byte, 2048)
	for {
		n, _, err := s.near.ReadFrom(b)
		if err != nil {
			return
		}
		if n >= 4 {
			s.mu.Lock()
			s.got = append(s.got, clock.Boot().Now())
			s.mu.Unlock()
		}
	}
}

// obey is the far sender's side of a hint.
func (s *stream) obey() {
	b := make([]byte, 16)
	for {
		n, _, err := s.far.ReadFrom(b)
		if err != nil {
			return
		}
		stop := n > 0 && b[0] == 'f'
		time.AfterFunc(s.rtt/2, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.stopped = stop
		})
	}
}

// tell sends the far sender a word, some times since the air may lose it.
func (s *stream) tell(word byte) {
	for i := range 3 {
		time.AfterFunc(time.Duration(i)*5*time.Millisecond, func() {
			_, _ = s.near.WriteTo([]byte{word}, s.far.LocalAddr()) // the next one may get through
		})
	}
}

func (s *stream) RTT() time.Duration { return s.rtt }

func (s *stream) Freeze(mihf.Freeze) {
	s.mu.Lock()
	first := !s.held
	if first {
		s.held, s.frozen = true, clock.Boot().Now()
	}
	s.mu.Unlock()
	if first {
		s.tell('f')
	}
}

func (s *stream) Unfreeze(mihf.Unfreeze) {
	s.mu.Lock()
	s.held = false
	s.mu.Unlock()
	s.tell('u')
}

func (s *stream) Characteristics(mihf.LCI) {}

// losses tells apart what was lost in the fade, while other data still came through, and what
// was sent after the last data frame that the medium delivered.
func (s *stream) losses(lastData mihf.Time) losses {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := losses{sent: len(s.aired)}
	for _, at := range s.aired {
		if at > lastData {
			l.after++
		}
	}
	l.fade = l.sent - len(s.got) - l.after
	return l
}

// between counts what was sent within a time.
func (s *stream) between(from, to mihf.Time) losses {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := losses{sent: len(s.aired)}
	for _, at := range s.aired {
		if at > from && at < to {
			l.after++
		}
	}
	return l
}

// firstAfter is when a packet was received first after a moment.
func (s *stream) firstAfter(moment mihf.Time) mihf.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return firstAfter(s.got, moment)
}

// firstAfter is the first moment after another; 0: there is none.
func firstAfter(list []mihf.Time, moment mihf.Time) mihf.Time {
	for _, at := range list {
		if at > moment {
			return at
		}
	}
	return 0
}

// freezeAt is when the station was told to freeze last; 0: it was not.
func (s *stream) freezeAt() mihf.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frozen
}
