package dccp

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"mihf.dev/mihf"
)

// State is the state of a connection (RFC 4340, section 4.3). LISTEN is [Listener]'s.
type State uint8

// States, in the order that section 8.5 compares them by.
const (
	StateClosed State = iota
	StateRequest
	StateRespond
	StatePartOpen
	StateOpen
	StateCloseReq
	StateClosing
	StateTimeWait
)

var stateNames = [...]string{"closed", "request", "respond", "partopen", "open", "closereq", "closing", "timewait"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Ways in which a connection ends. A ResetError tells that the peer ended it otherwise
// than by a close.
var (
	// ErrTimeout: the peer did not answer for too long.
	ErrTimeout = errors.New("dccp: no answer from the peer; is it there, and is DCCP let through?")
	// ErrClosed: this end closed or aborted the connection.
	ErrClosed = errors.New("dccp: connection closed here")
	// ErrProtocol: the peer broke the protocol, and the connection was reset here.
	ErrProtocol = errors.New("dccp: the peer broke the protocol")
)

// ResetError is a reset by the peer.
type ResetError struct {
	Code ResetCode
	Data [3]byte
}

func (e *ResetError) Error() string {
	switch e.Code {
	case ResetConnectionRefused, ResetBadServiceCode, ResetTooBusy, ResetNoConnection:
		return "dccp: the peer refused: " + e.Code.String()
	default:
		return "dccp: reset by the peer: " + e.Code.String()
	}
}

// Config says how an endpoint behaves. A zero value means the default that is named.
type Config struct {
	SrcPort, DstPort uint16
	Service          ServiceCode
	// CCIDs are the congestion controls to use, for both directions, best first: 2 or 3.
	// Default: 2, then 3.
	CCIDs []uint8
	// MTU is the longest packet in bytes, with DCCP's header and without what lies below
	// it. Default 1,280 less the headers of IPv6 and UDP.
	MTU int
	// SequenceWindow is our first Sequence Window; it grows with the rate. 32 to 2^46-1,
	// default 1,024.
	SequenceWindow uint64
	// ShortSeq asks for numbers of 24 bits on our packets (section 7.6.2 says when not to).
	ShortSeq bool
	// Coverage is the CsCov of our packets, once the peer accepts it: 0 covers all.
	Coverage uint8
	// MinCoverage is the least CsCov that is accepted from the peer beside 0; 0: only 0.
	MinCoverage uint8
	// DataChecksum protects each packet's data by a CRC, and asks the peer to check it.
	DataChecksum bool
	// NoFreeze leaves the Freeze extension out; a freeze is then of this end alone.
	NoFreeze bool
	// Hello goes on each Request, or Response, for the program at the other end: see
	// [Conn.PeerHello]. At most 64 bytes; none: no option.
	Hello []byte
	// MaxFreeze is how long a freeze can last, whoever asked for it: then it ends, to
	// recovery. Default 60 s.
	MaxFreeze time.Duration
	// Keepalive is the silence after which the peer is asked whether it is there; it then
	// has as long again. Default 2 min; negative: never.
	Keepalive time.Duration
	// ConnectTimeout is how long a client asks for a connection. Default 3 min.
	ConnectTimeout time.Duration
}

// Times and limits of the RFC.
const (
	msl = 2 * time.Minute
	// TimeWait is how long the tuple of a connection that has ended is not to be used
	// again, at the end that got the Reset (section 8.3).
	TimeWait      = 2 * msl
	defaultRTT    = 200 * time.Millisecond // section 3.4
	requestFirst  = time.Second            // section 8.1.1
	partOpenFirst = 200 * time.Millisecond // section 8.1.5
	backoffMost   = 64 * time.Second
	handshakeMost = 4 * msl
	syncsASecond  = 8 // section 7.5.4
)

// overhead is what is left of the MTU for headers and options beside data: the longest
// header, and the options that go on packets with data.
const overhead = 24 + 24

// withDefaults fills in defaults and reports what is wrong.
func (c Config) withDefaults() (Config, error) {
	if len(c.CCIDs) == 0 {
		c.CCIDs = []uint8{2, 3}
	}
	for _, id := range c.CCIDs {
		if id != 2 && id != 3 {
			return c, fmt.Errorf("dccp: congestion control %d is not known: use 2 or 3", id)
		}
	}
	if len(c.CCIDs) > 2 {
		return c, fmt.Errorf("dccp: %d congestion controls; name each once", len(c.CCIDs))
	}
	setDefault(&c.MTU, 1280-40-8)
	setDefault(&c.SequenceWindow, 1024)
	setDefault(&c.MaxFreeze, time.Minute)
	setDefault(&c.Keepalive, 2*time.Minute)
	setDefault(&c.ConnectTimeout, 3*time.Minute)
	switch {
	case c.MTU < minMTU || c.MTU > 65535:
		return c, fmt.Errorf("dccp: MTU of %d bytes is not within %d to 65535", c.MTU, minMTU)
	case c.SequenceWindow < minWindow || c.SequenceWindow > maxWindow:
		return c, fmt.Errorf("dccp: sequence window %d is not within %d to 2^46-1", c.SequenceWindow, minWindow)
	case c.Coverage > 15 || c.MinCoverage > 15:
		return c, errors.New("dccp: checksum coverage is not within 0 to 15")
	case len(c.Hello) > maxHello:
		return c, fmt.Errorf("dccp: hello of %d bytes is longer than %d", len(c.Hello), maxHello)
	case c.Service == ServiceInvalid:
		return c, fmt.Errorf("dccp: %v is no service code", c.Service)
	}
	return c, nil
}

const maxHello = 64

// minMTU leaves room for the handshake, and for Acks with something to tell.
const minMTU = 548

// vectorRuns is how long an Ack Vector may be.
func vectorRuns(mtu int) int {
	return min(maxRuns, mtu-headerBytes(TypeDataAck, true)-optionsMost)
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Conn is one end of a connection. It is pure: bytes and the time come in by its
// methods, and packets go out by [Conn.Poll]. It is used by one goroutine at a time.
type Conn struct {
	cfg    Config
	server bool
	state  State
	err    error

	// Sequence numbers (section 7.1).
	iss, isr, osr, gss, gsr, gar Seq
	sentFar, heardFar            bool // the windows no longer reach back to iss, isr
	seen                         seenSet
	in                           arrival // the packet that is being taken

	feat     features
	featBack backoff

	tx     sender
	rx     receiver
	vec    ackVector
	vecTx  bool // Ack Vectors are sent
	reset  outReset
	answer [maxAnswers]answer // Syncs and SyncAcks that wait
	nansw  int

	ackDue    bool // an Ack is to go out at once
	repeatDue bool // a Request, CloseReq or Close is
	respond   bool // a Response is due
	cookies   []byte
	hello     []byte // the peer's
	ndp       uint64 // packets without data just sent
	slow      bool   // the application asked for Slow Receiver

	back      backoff   // of requests, of PARTOPEN's Acks, of Closes
	deadline  mihf.Time // when the state is given up
	heard     mihf.Time // the last valid packet
	probe     backoff   // keepalive
	syncs     limiter
	resets    limiter
	timing    timing
	freeze    freezing
	readyAt   mihf.Time // when data that waits may go
	lastRecv  Seq       // packet whose data Receive returned last
	lastRxAt  mihf.Time // arrival of gsr
	response  Seq       // number of the last Response
	greeting  bool      // nothing after it has been acknowledged
	handshake mihf.Time // a packet of the handshake was sent, once only

	stats Stats
}

// Stats counts what a connection did.
type Stats struct {
	PacketsSent, PacketsReceived uint64
	DataSent, DataReceived       uint64 // datagrams of the application
	BytesSent, BytesReceived     uint64 // of the application
	DataLost                     uint64 // our datagrams that the network lost, as far as told
	Malformed                    uint64 // packets dropped for their form
	Invalid                      uint64 // outside of the windows
	Unexpected                   uint64 // of a type that does not fit the state
	Duplicates                   uint64 // received before, or too old to tell
	DataRefused                  uint64 // datagrams not delivered: coverage, corruption, or early
	SyncsSuppressed              uint64 // answers over the rate limit
	VectorForgotten              uint64 // runs of the Ack Vector that did not fit
	FreezesLocal, FreezesPeer    uint64
}

// NewClient makes a client's end. It starts to ask at the first Poll.
func NewClient(cfg Config, iss Seq) (*Conn, error) {
	c := new(Conn)
	if err := c.init(cfg, iss, false); err != nil {
		return nil, err
	}
	c.state = StateRequest
	c.offer()
	return c, nil
}

func (c *Conn) init(cfg Config, iss Seq, server bool) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	*c = Conn{cfg: cfg, server: server, cookies: c.cookies[:0]}
	c.vec.most = vectorRuns(cfg.MTU)
	c.iss = iss & seqMask
	c.gss, c.gar = c.iss.Add(-1), c.iss
	c.feat.init(server, c.iss)
	c.prefer()
	c.syncs = limiter{rate: syncsASecond}
	c.resets = limiter{rate: syncsASecond}
	return nil
}

// prefer sets the preferences of both ends' features.
func (c *Conn) prefer() {
	for w := range c.feat.at {
		f := &c.feat.at[w]
		f[fCCID].prefer(c.cfg.CCIDs...)
		f[fSendAckVec].prefer(1, 0)
		f[fSendNDP].prefer(1, 0)
		f[fCheckData].prefer(1, 0)
		f[fFreeze].prefer(1, 0)
		f[fSendLossRate].prefer(1, 0)
		f[fShortSeqnos].prefer(0, 1)
		f[fMinCsCov].prefer(0)
		f[fECNIncapable].prefer(1, 0)
	}
	if c.cfg.ShortSeq {
		c.feat.at[local][fShortSeqnos].prefer(1, 0)
	}
	c.feat.at[local][fECNIncapable].prefer(1) // ours is never readable here
	if c.cfg.MinCoverage > 0 {
		c.feat.at[local][fMinCsCov].prefer(c.cfg.MinCoverage, 0)
	}
	if n := c.cfg.Coverage; n > 0 {
		var atMost []uint8 // any least coverage that ours reaches will do
		for v := int(n); v >= 0; v-- {
			atMost = append(atMost, uint8(v))
		}
		c.feat.at[remote][fMinCsCov].prefer(atMost...)
	}
}

// offer starts the negotiations that the other end has not started.
func (c *Conn) offer() {
	fs := &c.feat
	ask := func(w where, i index, mandatory bool) {
		if f := &fs.at[w][i]; !f.asked && f.state == stable && f.value != uint64(f.prefs[0]) {
			fs.begin(w, i, 0, mandatory)
		}
	}
	only := len(c.cfg.CCIDs) == 1
	ask(local, fCCID, only)
	ask(remote, fCCID, only)
	ask(local, fECNIncapable, true) // section 12.1
	ask(local, fShortSeqnos, false)
	ask(local, fMinCsCov, false)
	if c.cfg.Coverage > 0 {
		ask(remote, fMinCsCov, false)
	}
	if c.cfg.DataChecksum {
		ask(remote, fCheckData, false)
	}
	if !c.cfg.NoFreeze {
		ask(local, fFreeze, false)
		ask(remote, fFreeze, false)
	}
	if c.cfg.CCIDs[0] == 2 {
		ask(remote, fSendAckVec, false)
	} else {
		ask(remote, fSendNDP, false)
		if only {
			ask(remote, fSendLossRate, false) // safe behind a Mandatory CCID: section 10.3
		}
	}
	if w := &fs.at[local][fSeqWindow]; w.value != c.cfg.SequenceWindow && w.state == stable {
		fs.begin(local, fSeqWindow, c.cfg.SequenceWindow, false)
	}
}

// knows reports whether a feature may be spoken of.
func (c *Conn) knows(_ where, i index) bool {
	switch i {
	case fFreeze:
		return !c.cfg.NoFreeze
	case fSendLossRate:
		return slices.Contains(c.cfg.CCIDs, 3)
	default:
		return true
	}
}

// State returns the state.
func (c *Conn) State() State { return c.state }

// Err returns why the connection ended: nil where the peer closed it, or it goes on.
func (c *Conn) Err() error { return c.err }

// Open reports whether data may be sent, as far as the handshake is concerned.
func (c *Conn) Open() bool { return c.state == StatePartOpen || c.state == StateOpen }

// Done reports whether nothing is left to be sent or awaited, but for TIMEWAIT.
func (c *Conn) Done() bool {
	return (c.state == StateClosed || c.state == StateTimeWait) && !c.reset.due
}

// Stats returns the counters.
func (c *Conn) Stats() Stats {
	s := c.stats
	s.VectorForgotten = c.vec.forgotten
	if c.tx != nil {
		s.DataLost = c.tx.lost()
	}
	return s
}

// RTT returns the round-trip time with queues, 0 where it is not known yet.
func (c *Conn) RTT() time.Duration { return c.timing.rtt }

// rtt returns the round-trip time, or the default.
func (c *Conn) rtt() time.Duration {
	if c.timing.rtt > 0 {
		return c.timing.rtt
	}
	return defaultRTT
}

// MaxData returns the longest datagram that can be sent, in bytes (section 14).
func (c *Conn) MaxData() int { return c.cfg.MTU - overhead }

// SetMTU tells that packets of more than the given bytes do not fit the path, or that
// longer ones do. It returns an error where it is too little to work with.
func (c *Conn) SetMTU(bytes int) error {
	if bytes < minMTU || bytes > 65535 {
		return fmt.Errorf("dccp: MTU of %d bytes is not within %d to 65535", bytes, minMTU)
	}
	c.cfg.MTU, c.vec.most = bytes, vectorRuns(bytes)
	return nil
}

// CCIDs returns the congestion controls in force: of what is sent and what is received.
func (c *Conn) CCIDs() (tx, rx uint8) {
	return uint8(c.feat.value(local, fCCID)), uint8(c.feat.value(remote, fCCID))
}

// Service returns the service code.
func (c *Conn) Service() ServiceCode { return c.cfg.Service }

// PeerHello returns the Hello of the peer, nil where it sent none.
func (c *Conn) PeerHello() []byte { return c.hello }

// SlowReceiver asks the peer not to send faster, for as long as on is set (section 11.6).
func (c *Conn) SlowReceiver(on bool) { c.slow = on }

// DropLast tells that the datagram that Receive returned last was dropped, so that the
// sender learns it (section 11.7).
func (c *Conn) DropLast(code DropCode) { c.vec.dropped(c.lastRecv, code) }
