package dccpnet

import (
	"net"
	"sync"
)

// Listener accepts connections. It is a net.Listener.
type Listener struct {
	end  *Endpoint
	once sync.Once
}

var _ net.Listener = (*Listener)(nil)

// Listen accepts connections over a carrier, which is closed with the listener.
func Listen(carrier Carrier, o Options) (*Listener, error) {
	e, err := newEndpoint(carrier, o, true)
	if err != nil {
		_ = carrier.Close()
		return nil, err
	}
	go e.run()
	return &Listener{end: e}, nil
}

// Accept waits for the next connection, which is a *[Conn].
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptDCCP()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// AcceptDCCP waits for the next connection.
func (l *Listener) AcceptDCCP() (*Conn, error) {
	select {
	case c := <-l.end.accept:
		return c, nil
	case <-l.end.finished:
		err := l.end.failed
		if err == nil {
			err = net.ErrClosed
		}
		return nil, &net.OpError{Op: "accept", Net: l.end.carrier.Network(), Addr: l.Addr(), Err: err}
	}
}

// Close stops listening and aborts the listener's connections: they live on its socket.
func (l *Listener) Close() error {
	var err error
	l.once.Do(func() { err = l.end.close() })
	return err
}

// Addr returns where the listener listens.
func (l *Listener) Addr() net.Addr {
	return Addr{Kind: l.end.carrier.Network(), Host: l.end.carrier.LocalAddr(), Port: l.end.opts.Conn.SrcPort}
}

// Stats returns the counters.
func (l *Listener) Stats() EndpointStats {
	e := l.end
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.ListenerStats = e.stray.Stats()
	s.BadChecksums = badChecksums(e.carrier)
	s.Connections, s.HalfOpen = len(e.conns), e.half
	return s
}
