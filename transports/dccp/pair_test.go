package dccp

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"mihf.dev/mihf"
)

// flight is a packet on its way.
type flight struct {
	at mihf.Time
	n  int
	to *end
	b  []byte
}

type flights []flight

func (f flights) Len() int { return len(f) }
func (f flights) Less(i, j int) bool {
	return f[i].at < f[j].at || f[i].at == f[j].at && f[i].n < f[j].n
}
func (f flights) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *flights) Push(x any)   { *f = append(*f, x.(flight)) }
func (f *flights) Pop() any {
	old := *f
	x := old[len(old)-1]
	*f = old[:len(old)-1]
	return x
}

// end is one end of a pair, with the application on it.
type end struct {
	name  string
	conn  *Conn
	queue [][]byte // datagrams that wait to be sent
	got   []string
	size  int // of datagrams that are made as long as fill is set
	fill  bool
	count int // received
}

// pair is two connections with a path between them, in virtual time.
type pair struct {
	t              testing.TB
	now            mihf.Time
	client, server *end
	listener       *Listener
	cookies        bool
	air            flights
	n              int
	delay          time.Duration
	spacing        time.Duration // of packets at the bottleneck of each direction; 0: none
	queue          int           // packets that wait there; more are lost
	free           map[*end]mihf.Time
	// fate decides of a packet: how much later than delay it arrives; lost where negative.
	fate func(from *end, b []byte) time.Duration
	log  []string // packets, as far as wanted
	keep bool
}

// newPair returns a client that asks a listener, which the first packet creates.
func newPair(t testing.TB, client, server Config) *pair {
	t.Helper()
	p := &pair{t: t, now: mihf.Time(time.Hour), delay: 10 * time.Millisecond, queue: 50, free: map[*end]mihf.Time{}}
	client.SrcPort, client.DstPort = 1000, 2000
	c, err := NewClient(client, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewListener(ListenerConfig{Conn: server, Secret: [32]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	p.listener = l
	p.client = &end{name: "client", conn: c}
	p.server = &end{name: "server"}
	return p
}

func (p *pair) other(e *end) *end {
	if e == p.client {
		return p.server
	}
	return p.client
}

// flush sends what an end may send now.
func (p *pair) flush(e *end) {
	if e.conn == nil {
		return
	}
	for {
		if e.fill && len(e.queue) == 0 {
			e.queue = append(e.queue, make([]byte, e.size))
		}
		var next []byte
		if len(e.queue) > 0 {
			next = e.queue[0]
		}
		b, took := e.conn.Poll(p.now, nil, next, len(e.queue) > 0)
		if took {
			e.queue = e.queue[1:]
		}
		if len(b) == 0 {
			return
		}
		p.send(e, b)
	}
}

func (p *pair) send(from *end, b []byte) {
	var h Packet
	if err := h.Parse(b); err != nil {
		p.t.Fatalf("%s sends %x: %v", from.name, b, err)
	}
	if h.CsCov == 0 && len(b) > 1232 {
		p.t.Fatalf("%s sends %d bytes", from.name, len(b))
	}
	if p.keep {
		p.log = append(p.log, from.name+" "+h.Type.String())
	}
	late := time.Duration(0)
	if p.fate != nil {
		if late = p.fate(from, b); late < 0 {
			return
		}
	}
	at := p.now
	if p.spacing > 0 {
		at = max(at, p.free[from])
		if at.Sub(p.now) > time.Duration(p.queue)*p.spacing {
			return
		}
		at = at.Add(p.spacing)
		p.free[from] = at
	}
	p.n++
	heap.Push(&p.air, flight{at.Add(p.delay + late), p.n, p.other(from), b})
}

// give hands a packet to an end as if it had come over the path.
func (p *pair) give(e *end, b []byte) {
	if e.conn == nil {
		conn, answer := p.listener.Receive(p.now, Tuple{}, b, p.cookies)
		e.conn = conn
		if len(answer) > 0 {
			p.send(e, answer)
		}
		if conn == nil {
			return
		}
		if conn.State() == StateRespond && b[8]>>1&15 == byte(TypeRequest) {
			p.flush(e)
			return
		}
	}
	if data, ok := e.conn.Receive(p.now, b); ok {
		e.count++
		if !p.client.fill && !p.server.fill {
			e.got = append(e.got, string(data))
		}
	}
	p.flush(e)
}

// run lets time pass.
func (p *pair) run(d time.Duration) {
	until := p.now.Add(d)
	for _, e := range []*end{p.client, p.server} {
		p.flush(e)
	}
	for {
		next := mihf.Time(0)
		if len(p.air) > 0 {
			next = p.air[0].at
		}
		for _, e := range []*end{p.client, p.server} {
			if e.conn != nil {
				next = mihf.Sooner(next, e.conn.Next())
			}
		}
		if next.IsZero() || next > until {
			p.now = until
			return
		}
		if next < p.now {
			next = p.now
		}
		p.step(next)
	}
}

func (p *pair) step(next mihf.Time) {
	stuck := next == p.now
	p.now = next
	worked := false
	for len(p.air) > 0 && p.air[0].at <= p.now {
		f := heap.Pop(&p.air).(flight)
		p.give(f.to, f.b)
		worked = true
	}
	for _, e := range []*end{p.client, p.server} {
		if e.conn != nil && e.conn.Next().Due(p.now) {
			before := e.conn.Next()
			e.conn.Advance(p.now)
			p.flush(e)
			worked = worked || e.conn.Next() != before
		}
	}
	if stuck && !worked {
		p.t.Fatalf("time stands still at %v: client %v next %v, server %v", p.now, p.client.conn.State(), p.client.conn.Next(), p.server.conn)
	}
}

func (p *pair) open() *pair {
	p.t.Helper()
	p.run(2 * time.Second)
	p.wantStates(StateOpen, StateOpen)
	return p
}

func (p *pair) wantStates(client, server State) {
	p.t.Helper()
	got := fmt.Sprint(p.client.conn.State())
	want := fmt.Sprint(client, " ", server)
	if p.server.conn != nil {
		got += fmt.Sprint(" ", p.server.conn.State())
	}
	if got != want {
		p.t.Fatalf("states %s, want %s (errors %v, %v)", got, want, p.client.conn.Err(), serverErr(p))
	}
}

func serverErr(p *pair) error {
	if p.server.conn == nil {
		return nil
	}
	return p.server.conn.Err()
}

func (p *pair) wantLog(want ...string) {
	p.t.Helper()
	if got, want := strings.Join(p.log, ", "), strings.Join(want, ", "); got != want {
		p.t.Fatalf("packets:\n%s\nwant:\n%s", got, want)
	}
	p.log = nil
}

// lossy returns a fate that loses a share of the packets and delays others.
func lossy(r *rand.Rand, share float64, jitter time.Duration) func(*end, []byte) time.Duration {
	return func(*end, []byte) time.Duration {
		if r.Float64() < share {
			return -1
		}
		if jitter == 0 {
			return 0
		}
		return time.Duration(r.Int64N(int64(jitter)))
	}
}
