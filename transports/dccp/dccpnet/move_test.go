package dccpnet

import (
	"bytes"
	"net/netip"
	"testing"

	"mihf.dev/transports/dccp"
)

func TestMoveRoundTrip(t *testing.T) {
	k := pathKey{1, 2, 3}
	m := move{kind: moveChallenge, id: k.id(true), counter: 77, nonce: [8]byte{9}}
	b := m.append(nil, &k, 1000, 2000)
	if !isMove(b) || parseMove(b) != m || !k.genuine(b) {
		t.Fatalf("%x is read as %+v", b, parseMove(b))
	}
	var p dccp.Packet
	if err := p.Parse(b); err == nil {
		t.Error("taken for a packet of a connection")
	}
	other := pathKey{4}
	if other.genuine(b) {
		t.Error("genuine by another key")
	}
	for i := range b {
		bad := bytes.Clone(b)
		bad[i] ^= 1
		if isMove(bad) && k.genuine(bad) {
			t.Errorf("byte %d changed, and genuine", i)
		}
	}
	if k.id(true) == k.id(false) {
		t.Error("both ends have one id")
	}
}

func FuzzMove(f *testing.F) {
	k := pathKey{1}
	m := move{kind: moveStart, id: k.id(true), counter: 1}
	f.Add(m.append(nil, &k, 1, 2))
	f.Fuzz(func(t *testing.T, b []byte) {
		if !isMove(b) {
			return
		}
		m := parseMove(b)
		again := m.append(nil, &k, uint16(b[0])<<8|uint16(b[1]), uint16(b[2])<<8|uint16(b[3]))
		if k.genuine(b) != bytes.Equal(again, b) {
			t.Fatalf("%x: genuine %v", b, k.genuine(b))
		}
	})
}

// recorder is a carrier that keeps the moves that are sent.
type recorder struct{ sent [][]byte }

func (r *recorder) Read(func(netip.AddrPort, []byte), func()) error { return nil }
func (r *recorder) Write(_ netip.AddrPort, b []byte, lengths []int) (int, error) {
	if isMove(b) {
		r.sent = append(r.sent, bytes.Clone(b))
	}
	return len(lengths), nil
}
func (r *recorder) LocalAddr() netip.AddrPort   { return netip.MustParseAddrPort("192.0.2.1:1") }
func (r *recorder) Network() string             { return "dccp+test" }
func (r *recorder) Overhead(netip.AddrPort) int { return 28 }
func (r *recorder) Close() error                { return nil }

// Who does not know the key gets no answer; an answer is never longer than what it
// answers; a move that was used is worth nothing; and the new address is not sent to
// before it has answered.
func TestHostileMoves(t *testing.T) {
	r := &recorder{}
	e, err := newEndpoint(r, Options{}, true)
	if err != nil {
		t.Fatal(err)
	}
	home, away := netip.MustParseAddrPort("192.0.2.2:2"), netip.MustParseAddrPort("198.51.100.9:9")
	engine, err := dccp.NewClient(dccp.Config{SrcPort: 1, DstPort: 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := newConn(e, engine, key{home, 1, 2})
	c.move.usable, c.move.key = true, pathKey{7}
	c.move.mine, c.move.theirs = c.move.key.id(true), c.move.key.id(false)
	e.name(c, c.move.mine)
	give := func(k *pathKey, from netip.AddrPort, m move) []byte {
		r.sent = nil
		b := m.append(nil, k, 2, 1)
		e.take(from, b)
		if len(r.sent) == 0 {
			return nil
		}
		if len(r.sent) > 1 || len(r.sent[0]) > len(b) {
			t.Fatalf("%d packets of %d bytes in answer to %d", len(r.sent), len(r.sent[0]), len(b))
		}
		return r.sent[0]
	}
	wrong, right := pathKey{8}, c.move.key
	if got := give(&wrong, away, move{kind: moveStart, id: c.move.mine, counter: 1}); got != nil {
		t.Error("a forged move is answered")
	}
	if got := give(&right, away, move{kind: moveStart, id: [8]byte{1}, counter: 1}); got != nil {
		t.Error("a move of nobody is answered")
	}
	challenge := give(&right, away, move{kind: moveStart, id: c.move.mine, counter: 5})
	if challenge == nil || parseMove(challenge).kind != moveChallenge {
		t.Fatalf("answer %x", challenge)
	}
	if c.remote != home {
		t.Error("moved without an answer to the challenge")
	}
	if got := give(&right, away, move{kind: moveStart, id: c.move.mine, counter: 5}); got != nil {
		t.Error("a replayed move is answered")
	}
	nonce := parseMove(challenge).nonce
	if got := give(&right, netip.MustParseAddrPort("198.51.100.10:9"), move{kind: moveAnswer, id: c.move.mine, counter: 6, nonce: nonce}); got != nil || c.remote != home {
		t.Error("an answer from a third address counts")
	}
	if got := give(&right, away, move{kind: moveAnswer, id: c.move.mine, counter: 7}); got != nil || c.remote != home {
		t.Error("a wrong answer counts")
	}
	if got := give(&right, away, move{kind: moveAnswer, id: c.move.mine, counter: 8, nonce: nonce}); got == nil || c.remote != away {
		t.Error("the right answer does not count")
	}
	if s := c.Stats(); s.Rejected != 4 || s.Moved != 1 {
		t.Errorf("stats %+v", s.RebindStats)
	}
}
