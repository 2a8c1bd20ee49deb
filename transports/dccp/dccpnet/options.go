package dccpnet

import (
	"errors"
	"log/slog"
	"net"
	"time"

	"mihf.dev/transports/dccp"
)

// Options say how an endpoint and its connections work. Fields that are zero mean the
// default that they name.
type Options struct {
	// Conn is the configuration of the connections. Dial needs its DstPort, the DCCP port
	// of the service; its SrcPort, if 0, is chosen at random. A listener's SrcPort is the
	// port that it listens on; 0: all.
	Conn dccp.Config
	// Services are those that a listener serves; none named: all.
	Services []dccp.ServiceCode
	// PathMTU is the longest IP packet in bytes; 1,500. It lowers Conn.MTU.
	PathMTU int

	// NoRebind leaves the agreement on a key out, and with it the ability to follow the
	// peer to another address.
	NoRebind bool

	ReceiveQueue int           // datagrams that wait to be read, a connection; 512
	SendQueue    int           // datagrams that wait to be sent, a connection; 256
	Backlog      int           // connections that wait to be accepted; 256
	HalfOpen     int           // connections whose handshake is not done; 256; negative: none, always cookies
	Linger       time.Duration // how long Close waits for the peer; 1 s
	Logger       *slog.Logger  // nil: discard
}

func (o Options) withDefaults() Options {
	setDefault(&o.PathMTU, 1500)
	setDefault(&o.ReceiveQueue, 512)
	setDefault(&o.SendQueue, 256)
	setDefault(&o.Backlog, 256)
	setDefault(&o.HalfOpen, 256)
	setDefault(&o.Linger, time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// ErrTooLong tells that a datagram is longer than what the path takes: see
// [Conn.MaxData].
var ErrTooLong = errors.New("dccp: datagram too long for the path: write at most MaxData bytes")

// opError is an error in net's form.
func opError(op string, c *Conn, err error) error {
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
