package dccp

import (
	"fmt"
	"slices"

	"mihf.dev/mihf"
)

// ListenerConfig says what a [Listener] accepts.
type ListenerConfig struct {
	// Conn is the configuration of the connections; ports and service come from each Request.
	Conn Config
	// Services are the service codes that are served; none named: all that are valid.
	Services []ServiceCode
	// Port is the port that is listened on; Requests for others are refused. 0: all are.
	Port uint16
	// Closed refuses all Requests, for an endpoint that only connects.
	Closed bool
	// Secret is random and known to nobody else. Cookies are good as long as it stays.
	Secret [32]byte
}

// resetsASecond bounds the Resets that a listener sends (RFC 4340, section 8.1.3).
const resetsASecond = 1024

// ListenerStats counts what a listener did without a connection coming from it.
type ListenerStats struct {
	Malformed       uint64 // packets dropped for their form
	Refused         uint64 // Requests with the wrong service code
	BadCookies      uint64
	Strays          uint64 // packets of no connection
	ResetsUnsent    uint64 // Resets over the rate limit
	CookiesSent     uint64
	CookiesAccepted uint64
}

// Listener answers packets that belong to no connection (the state LISTEN). It is pure,
// and used by one goroutine.
type Listener struct {
	cfg     ListenerConfig
	resets  limiter
	stats   ListenerStats
	scratch Conn // makes the Responses that leave nothing behind
	buf     []byte
}

// NewListener makes a listener. Its error tells what is wrong with the configuration.
func NewListener(cfg ListenerConfig) (*Listener, error) {
	if _, err := cfg.Conn.withDefaults(); err != nil {
		return nil, err
	}
	if slices.Contains(cfg.Services, ServiceInvalid) {
		return nil, fmt.Errorf("dccp: %v is no service code", ServiceInvalid)
	}
	return &Listener{cfg: cfg, resets: limiter{rate: resetsASecond}}, nil
}

// Stats returns the counters.
func (l *Listener) Stats() ListenerStats { return l.stats }

// Receive takes a packet that belongs to no connection. It returns the connection that
// came of it, which may have packets to send, or the packet to answer with; or neither.
// With cookies set, a Request leaves no state here: the connection comes into being when
// the client brings back the Init Cookie of the Response (RFC 4340, section 8.1.4).
//
// If the packet that completed a handshake brought a datagram too, the caller gets it by
// giving the packet to the connection: Receive hasn't done so.
func (l *Listener) Receive(now mihf.Time, t Tuple, b []byte, cookies bool) (c *Conn, answer []byte) {
	var p Packet
	if p.Parse(b) != nil {
		l.stats.Malformed++
		return nil, nil
	}
	switch {
	case p.Type == TypeRequest && (l.cfg.Closed || l.cfg.Port != 0 && p.DstPort != l.cfg.Port):
		l.stats.Refused++
		return nil, l.reset(now, &p, ResetConnectionRefused)
	case p.Type == TypeRequest && !l.serves(p.Service):
		l.stats.Refused++
		return nil, l.reset(now, &p, ResetBadServiceCode)
	case p.Type == TypeRequest && cookies:
		return nil, l.answerWithCookie(now, t, &p)
	case p.Type == TypeRequest:
		c := new(Conn)
		l.respond(now, c, &p, initialSeq(l.cfg.Secret[:], t, now))
		return c, nil
	case p.Type.HasAck() && p.Type != TypeReset:
		if body, found := gatherCookies(p.Options); found {
			return l.takeCookie(now, t, &p, body)
		}
	}
	l.stats.Strays++
	return nil, l.reset(now, &p, ResetNoConnection)
}

// Refuse answers a packet of a connection that is in TIMEWAIT, or of none.
func (l *Listener) Refuse(now mihf.Time, b []byte) []byte {
	var p Packet
	if p.Parse(b) != nil {
		l.stats.Malformed++
		return nil
	}
	l.stats.Strays++
	return l.reset(now, &p, ResetNoConnection)
}

func (l *Listener) serves(s ServiceCode) bool {
	return s != ServiceInvalid && (len(l.cfg.Services) == 0 || slices.Contains(l.cfg.Services, s))
}

// respond makes c a connection that owes a Response to the Request p.
func (l *Listener) respond(now mihf.Time, c *Conn, p *Packet, iss Seq) {
	cfg := l.cfg.Conn
	cfg.SrcPort, cfg.DstPort, cfg.Service = p.DstPort, p.SrcPort, p.Service
	if err := c.init(cfg, iss, true); err != nil {
		panic(err) // the configuration was checked, and the service is valid
	}
	c.state = StateRespond
	c.deadline = now.Add(handshakeMost)
	c.isr, c.gsr = p.Seq, p.Seq.Add(-1)
	c.feat.fgsr = p.Seq.Add(-1)
	c.process(now, p)
}

// reset answers a packet of no connection, within the rate limit.
func (l *Listener) reset(now mihf.Time, p *Packet, code ResetCode) []byte {
	if p.Type == TypeReset {
		return nil
	}
	if !l.resets.allow(now) {
		l.stats.ResetsUnsent++
		return nil
	}
	r := looseReset(p, code)
	out := Packet{
		SrcPort: p.DstPort, DstPort: p.SrcPort, Type: TypeReset, Extended: true,
		Seq: r.seq, Ack: r.ack, Code: r.code,
	}
	return out.Append(nil)
}
