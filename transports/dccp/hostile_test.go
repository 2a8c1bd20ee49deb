package dccp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"mihf.dev/mihf"
)

// RFC 4340, sections 7.5.3 to 7.5.5: who cannot guess the numbers changes nothing, and
// gets at most eight Syncs a second.
func TestBlindAttack(t *testing.T) {
	p := newPair(t, Config{}, Config{}).open()
	p.run(10 * time.Second)
	p.keep = true
	v := p.server.conn
	before := *v
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 5000 {
		typ := Type(r.IntN(int(numTypes)))
		a := Packet{
			SrcPort: 1000, DstPort: 2000, Type: typ, Extended: true, Data: []byte("evil"),
			Seq: Seq(r.Uint64()) & seqMask, Ack: Seq(r.Uint64()) & seqMask, Code: ResetClosed,
			Options: []byte{optMandatory, optChangeL, 4, featCCID, 9, 0, 0, 0},
		}
		if a.Seq.In(v.swl().Add(-2000), v.swh().Add(2000)) {
			continue
		}
		p.give(p.server, a.Append(nil))
		if i%1000 == 999 {
			p.run(100 * time.Millisecond)
		}
	}
	if v.State() != StateOpen || len(p.server.got) != 0 {
		t.Fatalf("state %v, got %q", v.State(), p.server.got)
	}
	if p.client.conn.gss.Before(v.gsr) || v.gss.Before(v.gar) || v.feat != before.feat {
		t.Error("the attack moved numbers or features")
	}
	// Of the Syncs, those that answer a Reset acknowledge a number that the client knows.
	if syncs := strings.Count(fmt.Sprint(p.log), "server"); syncs > syncsASecond || len(p.log) > 2*syncs {
		t.Errorf("%d packets in answer: %v", len(p.log), p.log)
	}
	if s := v.Stats(); s.SyncsSuppressed == 0 || s.Invalid < 4000 {
		t.Errorf("not counted: %+v", s)
	}
	p.client.queue = [][]byte{[]byte("good")}
	p.run(time.Second)
	if len(p.server.got) != 1 {
		t.Errorf("got %q", p.server.got)
	}
}

// A valid sequence number alone is not enough for what ends or resynchronises a
// connection: the acknowledgement number has to fit, too.
func TestHalfGuess(t *testing.T) {
	for _, typ := range []Type{TypeReset, TypeClose, TypeSync, TypeSyncAck, TypeAck, TypeDataAck} {
		p := newPair(t, Config{}, Config{}).open()
		p.run(10 * time.Second)
		v := p.server.conn
		gsr := v.gsr
		a := Packet{SrcPort: 1000, DstPort: 2000, Type: typ, Extended: true, Seq: v.gsr.Add(3), Ack: v.gss.Add(5), Data: []byte("x")}
		p.give(p.server, a.Append(nil))
		if v.State() != StateOpen || v.gsr != gsr || len(p.server.got) > 0 {
			t.Errorf("%v: state %v, GSR moved by %d", typ, v.State(), v.gsr.Sub(gsr))
		}
	}
}

// Section 7.5.3: while a connection is active, a Sync beyond the window is no good, even
// with a fitting acknowledgement number; after three silent round-trips it is.
func TestSyncWhileActive(t *testing.T) {
	p := newPair(t, Config{}, Config{}).open()
	v := p.server.conn
	sync := func() bool {
		gsr := v.gsr
		a := Packet{SrcPort: 1000, DstPort: 2000, Type: TypeSync, Extended: true, Seq: v.gsr.Add(1 << 30), Ack: v.gss}
		v.Receive(p.now, a.Append(nil))
		return v.gsr != gsr
	}
	p.client.queue = [][]byte{[]byte("x")}
	p.run(15 * time.Millisecond)
	if sync() {
		t.Error("accepted while active")
	}
	p.run(time.Second)
	if !sync() {
		t.Error("refused while silent")
	}
}

// A flood of Requests leaves no state where cookies are used, and each answer is shorter
// than thrice the Request.
func TestRequestFlood(t *testing.T) {
	l, err := NewListener(ListenerConfig{Secret: [32]byte{5}})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	now := mihf.Time(time.Hour)
	for range 2000 {
		c, err := NewClient(Config{SrcPort: uint16(r.IntN(1 << 16)), DstPort: 2000}, Seq(r.Uint64()))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := c.Poll(now, nil, nil, false)
		conn, answer := l.Receive(now, Tuple{RemotePort: c.cfg.SrcPort}, b, true)
		if conn != nil {
			t.Fatal("state was made")
		}
		if len(answer) == 0 || len(answer) > 3*len(b) {
			t.Fatalf("answer of %d bytes to %d", len(answer), len(b))
		}
	}
}

// Section 8.1.4: a cookie that was tampered with, is old, or is of another tuple is
// answered by a Reset, Bad Init Cookie.
func TestBadCookies(t *testing.T) {
	l, err := NewListener(ListenerConfig{Secret: [32]byte{5}})
	if err != nil {
		t.Fatal(err)
	}
	now := mihf.Time(time.Hour)
	tuple := Tuple{RemotePort: 1000}
	c, _ := NewClient(Config{SrcPort: 1000, DstPort: 2000}, 77)
	b, _ := c.Poll(now, nil, nil, false)
	_, response := l.Receive(now, tuple, b, true)
	c.Receive(now, response)
	ack, _ := c.Poll(now, nil, nil, false)
	code := func(b []byte, t Tuple, now mihf.Time) (bool, ResetCode) {
		conn, answer := l.Receive(now, t, b, true)
		var p Packet
		if conn != nil || p.Parse(answer) != nil {
			return conn != nil, 0
		}
		return false, p.Code
	}
	if ok, _ := code(ack, tuple, now); !ok {
		t.Fatal("the good cookie is refused")
	}
	if ok, c := code(ack, Tuple{RemotePort: 1001}, now); ok || c != ResetBadInitCookie {
		t.Errorf("other tuple: %v, %v", ok, c)
	}
	if ok, c := code(ack, tuple, now.Add(cookieLife+1)); ok || c != ResetBadInitCookie {
		t.Errorf("old: %v, %v", ok, c)
	}
	var p Packet
	if err := p.Parse(ack); err != nil {
		t.Fatal(err)
	}
	options := len(ack) - len(p.Options)
	for i := options + 2; i < options+2+40; i++ {
		bad := append([]byte(nil), ack...)
		bad[i] ^= 1
		if ok, c := code(bad, tuple, now); ok || c != ResetBadInitCookie {
			t.Fatalf("byte %d changed: %v, %v", i, ok, c)
		}
	}
}

// Section 8.3.1 and step 2: packets of no connection.
func TestStrays(t *testing.T) {
	l, err := NewListener(ListenerConfig{Services: []ServiceCode{5}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		in   Packet
		want *Packet
	}{
		"Data":                            {Packet{Type: TypeData, Extended: true, Seq: 9}, &Packet{Code: ResetNoConnection, Seq: 0, Ack: 9}},
		"Ack":                             {Packet{Type: TypeAck, Extended: true, Seq: 9, Ack: 20}, &Packet{Code: ResetNoConnection, Seq: 21, Ack: 9}},
		"short Ack":                       {Packet{Type: TypeAck, Seq: 9, Ack: 0xffffff}, &Packet{Code: ResetNoConnection, Seq: 0, Ack: 9}},
		"Reset":                           {Packet{Type: TypeReset, Extended: true, Seq: 9, Ack: 20}, nil},
		"Request for another service":     {Packet{Type: TypeRequest, Extended: true, Seq: 9, Service: 6}, &Packet{Code: ResetBadServiceCode, Ack: 9}},
		"Request for the invalid service": {Packet{Type: TypeRequest, Extended: true, Seq: 9, Service: ServiceInvalid}, &Packet{Code: ResetBadServiceCode, Ack: 9}},
	} {
		conn, b := l.Receive(mihf.Time(time.Hour), Tuple{}, c.in.Append(nil), false)
		if conn != nil || (b == nil) != (c.want == nil) {
			t.Errorf("%s: answer %x", name, b)
			continue
		}
		if c.want == nil {
			continue
		}
		var got Packet
		if err := got.Parse(b); err != nil || got.Type != TypeReset || got.Code != c.want.Code || got.Seq != c.want.Seq || got.Ack != c.want.Ack {
			t.Errorf("%s: answer %+v, %v", name, got, err)
		}
	}
	sent := 0
	for range 3 * resetsASecond {
		a := Packet{Type: TypeData, Extended: true}
		if _, b := l.Receive(mihf.Time(time.Hour), Tuple{}, a.Append(nil), false); b != nil {
			sent++
		}
	}
	if sent > resetsASecond || l.Stats().ResetsUnsent == 0 {
		t.Errorf("%d Resets in a second, stats %+v", sent, l.Stats())
	}
}

// TestLongestHeader: with all that a peer can ask for on one packet, its header stays
// within what the data offset can say, which else would panic.
func TestLongestHeader(t *testing.T) {
	for _, typ := range []Type{TypeAck, TypeDataAck} {
		p := newPair(t, Config{CCIDs: []uint8{3}, MinCoverage: 5}, Config{MinCoverage: 5, DataChecksum: true}).open()
		v, drops := p.server.conn, 0
		fullHeader(t, p, v)
		var h Packet
		b := v.build(p.now, nil, typ, v.gsr, make([]byte, 100))
		if err := h.Parse(b); err != nil {
			t.Fatalf("%v: %v", typ, err)
		}
		seen := map[byte]int{}
		r := ReadOptions(h.Options)
		for o := (Option{}); r.Next(&o); seen[o.Type] += len(o.Data) {
			if o.Type == optDataDropped {
				for _, x := range o.Data {
					drops += int(x >> 7)
				}
			}
		}
		if r.BadLength || r.Dangling {
			t.Errorf("%v: options %x", typ, h.Options)
		}
		if seen[optAckVector0] != maxRuns || seen[optLossIntervals] < 70 || seen[optUnfreeze] != 4 || seen[optChangeR] < 20 {
			t.Errorf("%v: options are missing: %v", typ, seen)
		}
		if n := len(b) - len(h.Data); drops == 0 || drops == maxDrops || n > MaxHeaderBytes || n < MaxHeaderBytes-100 {
			t.Errorf("%v: header of %d bytes, %d drops of %d", typ, n, drops, maxDrops)
		}
	}
}

// fullHeader gives a connection all that its next packet can be made to carry, and each
// as long as it can be.
func fullHeader(t *testing.T, p *pair, v *Conn) {
	t.Helper()
	rx, ok := v.rx.(*receiver3)
	if !ok || !v.freezeInForce() {
		t.Fatal("no CCID 3, or no Freeze extension")
	}
	seq := rx.seq // every 90th packet is lost, until there are nine intervals
	for i := range uint64(2000) {
		if p.now = p.now.Add(time.Millisecond); i%90 != 0 {
			rx.received(p.now, &arrival{typ: TypeData, seq: Seq((seq + 1 + i) & seqMask), bytes: 500, ccval: uint8(i / 30 % 16)})
		}
	}
	rx.due = true
	v.vecTx = true
	base := v.gsr
	for i := range int64(2 * maxRuns) { // every second packet is lost
		v.gsr = base.Add(2 * i)
		v.vec.add(v.gsr)
	}
	v.vec.data = v.gsr
	for i := range int64(2 * maxDrops) {
		v.vec.dropped(v.gsr.Add(1000*(i-2*maxDrops)), DropReceiveBuffer)
	}
	v.feat.at[local][fSendNDP].value, v.ndp = 1, 1<<48-1
	v.timing.owed, v.timing.owedAt = true, p.now.Add(-time.Second)
	v.slow = true
	for i := range maxRefusals {
		v.feat.refuseUnknown(remote, byte(200+i))
	}
	for w := range v.feat.at {
		for i := range v.feat.at[w] {
			f := &v.feat.at[w][i]
			f.confirm = true
			v.feat.begin(where(w), index(i), f.value, true)
		}
	}
	v.freeze.rate = 1e6
	v.freeze.tell(optUnfreeze)
}

// FuzzReceive gives a connection packets that have fitting numbers and any content.
func FuzzReceive(f *testing.F) {
	f.Add(uint8(3), []byte{optMandatory, optChangeL, 4, featCCID, 3, optAckVector0, 4, 0, 192})
	f.Add(uint8(4), []byte{optDataDropped, 4, 0x90, 3, optSlowReceiver, optLossIntervals, 12, 0, 0, 0, 10, 128, 0, 1, 0, 0, 10})
	f.Add(uint8(8), []byte{optFreeze, 2, optUnfreeze, 6, 0, 0, 1, 0})
	f.Add(uint8(2), []byte{optTimestamp, 6, 1, 2, 3, 4, optNDPCount, 3, 9})
	f.Add(uint8(7), []byte{optConfirmR, 5, featCCID, 2, 2, optReceiveRate, 6, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, typ uint8, options []byte) {
		for _, ccid := range []uint8{2, 3} {
			p := newPair(t, Config{CCIDs: []uint8{ccid}}, Config{}).open()
			p.server.queue = [][]byte{{1}, {2}, {3}}
			p.run(time.Second)
			v := p.server.conn
			options = options[:min(len(options), 900)]
			a := Packet{
				SrcPort: 1000, DstPort: 2000, Type: Type(typ) % numTypes, Extended: true,
				Seq: v.gsr.Add(1), Ack: v.gss, Options: append([]byte(nil), options...), Data: []byte("data"),
			}
			for len(a.Options)%4 != 0 {
				a.Options = append(a.Options, 0)
			}
			p.give(p.server, a.Append(nil))
			p.keep = true
			p.run(5 * time.Second)
			if len(p.log) > 100 {
				t.Fatalf("%d packets of one: %v", len(p.log), p.log[:20])
			}
		}
	})
}
