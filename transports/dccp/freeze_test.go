package dccp

import (
	"testing"
	"time"

	"mihf.dev/mihf"
)

// stream opens a pair with data from the server to the client, the side of a download.
func stream(t *testing.T, cfg Config) *pair {
	t.Helper()
	p := newPair(t, cfg, Config{MaxFreeze: cfg.MaxFreeze}).open()
	p.spacing = time.Millisecond
	p.server.fill, p.server.size = true, 500
	p.run(2 * time.Second)
	if p.client.count == 0 {
		t.Fatal("nothing flows")
	}
	return p
}

// cut takes the path away for a time, and returns how many data packets were lost.
func (p *pair) cut(d time.Duration) (lost int) {
	p.fate = func(_ *end, b []byte) time.Duration {
		if typ := Type(b[8] >> 1 & 15); typ == TypeData || typ == TypeDataAck {
			lost++
		}
		return -1
	}
	var kept flights // what is in the air is lost, too
	for _, f := range p.air {
		if typ := Type(f.b[8] >> 1 & 15); typ == TypeData || typ == TypeDataAck {
			lost++
		}
	}
	p.air = kept
	p.run(d)
	p.fate = nil
	return lost
}

// A freeze that is given a round-trip ahead stops the far sender: nothing is lost while
// the path is away, and the flow goes on within a round-trip of its return.
func TestFreezeOverOutage(t *testing.T) {
	for _, ccid := range []uint8{2, 3} {
		p := stream(t, Config{CCIDs: []uint8{ccid}})
		p.client.conn.Freeze(p.now)
		p.run(80 * time.Millisecond) // a round-trip, queue included
		if !p.server.conn.Frozen() {
			t.Fatalf("CCID %d: the peer is not frozen", ccid)
		}
		if lost := p.cut(2 * time.Second); lost != 0 {
			t.Errorf("CCID %d: %d data packets lost", ccid, lost)
		}
		before := p.client.count
		p.client.conn.Unfreeze(p.now, false, nil)
		p.run(25 * time.Millisecond)
		if p.client.count == before {
			t.Errorf("CCID %d: nothing came within a round-trip", ccid)
		}
		p.run(2 * time.Second)
		if p.client.conn.Frozen() || p.server.conn.Frozen() || p.client.conn.freeze.say != 0 {
			t.Errorf("CCID %d: still frozen, or still signalling", ccid)
		}
	}
}

// Freeze and Unfreeze are repeated until the peer has them, over a path that loses most.
func TestFreezeSignalsOverLossyPath(t *testing.T) {
	p := stream(t, Config{CCIDs: []uint8{2}})
	n := 0
	p.fate = func(*end, []byte) time.Duration {
		if n++; n%10 != 0 {
			return -1
		}
		return 0
	}
	p.client.conn.Freeze(p.now)
	p.run(5 * time.Second)
	if !p.server.conn.Frozen() {
		t.Error("never frozen")
	}
	p.client.conn.Unfreeze(p.now, false, nil)
	p.run(30 * time.Second)
	if p.server.conn.Frozen() {
		t.Error("still frozen")
	}
}

// The newest signal counts, whatever the order of arrival.
func TestFreezeSignalsReordered(t *testing.T) {
	p := stream(t, Config{})
	v := p.server.conn
	say := func(seq Seq, option byte) {
		a := Packet{SrcPort: 1000, DstPort: 2000, Type: TypeAck, Extended: true, Seq: seq, Ack: v.gss, Options: []byte{option, 2, 0, 0}}
		v.Receive(p.now, a.Append(nil))
	}
	first := v.gsr
	say(first.Add(5), optUnfreeze)
	say(first.Add(3), optFreeze)
	if v.Frozen() {
		t.Error("an old Freeze froze")
	}
	say(first.Add(7), optFreeze)
	say(first.Add(6), optUnfreeze)
	if !v.Frozen() {
		t.Error("an old Unfreeze thawed")
	}
}

// While either end holds it, the data stands still.
func TestFreezeOfBothEnds(t *testing.T) {
	p := stream(t, Config{})
	p.client.conn.Freeze(p.now)
	p.server.conn.Freeze(p.now)
	p.run(time.Second)
	p.client.conn.Unfreeze(p.now, false, nil)
	p.run(time.Second)
	before := p.client.count
	p.run(time.Second)
	if p.client.count != before {
		t.Error("the server's own freeze does not hold")
	}
	p.server.conn.Unfreeze(p.now, false, nil)
	p.run(time.Second)
	if p.client.count == before {
		t.Error("does not go on")
	}
}

// A freeze that nobody ends does so after MaxFreeze, to recovery, at either end alone; ten
// minutes within a longer MaxFreeze are survived.
func TestMaxFreeze(t *testing.T) {
	t.Run("default", func(t *testing.T) {
		p := stream(t, Config{})
		p.client.conn.Freeze(p.now)
		p.run(100 * time.Millisecond)
		p.cut(10 * time.Minute)
		if p.server.conn.Frozen() || p.client.conn.Frozen() {
			t.Error("still frozen")
		}
	})
	t.Run("15 minutes", func(t *testing.T) {
		p := stream(t, Config{MaxFreeze: 15 * time.Minute})
		p.client.conn.Freeze(p.now)
		p.run(100 * time.Millisecond)
		if lost := p.cut(10 * time.Minute); lost > 0 {
			t.Errorf("%d lost", lost)
		}
		p.client.conn.Unfreeze(p.now, false, nil)
		before := p.client.count
		p.run(time.Second)
		if p.client.count <= before {
			t.Errorf("does not go on: client %v %v, server %v %v", p.client.conn.State(), p.client.conn.Err(), p.server.conn.State(), p.server.conn.Err())
		}
	})
	t.Run("default, path away for less than keepalive", func(t *testing.T) {
		p := stream(t, Config{})
		p.client.conn.Freeze(p.now)
		p.run(100 * time.Millisecond)
		p.cut(3 * time.Minute)
		before := p.client.count
		p.run(2 * time.Minute)
		if p.client.count <= before {
			t.Errorf("does not go on: client %v %v, server %v %v", p.client.conn.State(), p.client.conn.Err(), p.server.conn.State(), p.server.conn.Err())
		}
	})
}

// A thaw to recovery reaches the far sender: in a download that probes, too, instead of
// going on at the rate from before.
func TestRecoveryReachesPeer(t *testing.T) {
	unfreeze := func(p *pair) { p.client.conn.Unfreeze(p.now, true, nil) }
	for name, c := range map[string]struct {
		most     time.Duration // the client's
		both     bool          // the server freezes, too, and thaws without recovery
		thaw     func(p *pair)
		recovers bool
	}{
		"lapse":                    {most: time.Second, thaw: func(p *pair) { p.run(900 * time.Millisecond) }, recovers: true},
		"Unfreeze":                 {most: time.Minute, thaw: unfreeze, recovers: true},
		"Unfreeze of both":         {most: time.Minute, thaw: unfreeze, both: true, recovers: true},
		"lapse of both":            {most: time.Second, thaw: func(p *pair) { p.run(900 * time.Millisecond) }, both: true, recovers: true},
		"Unfreeze, no recovery":    {most: time.Minute, thaw: func(p *pair) { p.client.conn.Unfreeze(p.now, false, nil) }},
		"lapse, then a new freeze": {most: time.Minute, thaw: refreeze},
	} {
		for _, ccid := range []uint8{2, 3} {
			p := newPair(t, Config{CCIDs: []uint8{ccid}, MaxFreeze: c.most}, Config{MaxFreeze: time.Hour}).open()
			p.spacing = time.Millisecond
			p.server.fill, p.server.size = true, 500
			p.run(2 * time.Second)
			p.client.conn.Freeze(p.now)
			if c.both {
				p.server.conn.Freeze(p.now)
			}
			p.run(100 * time.Millisecond)
			if !p.server.conn.Frozen() {
				t.Fatalf("%s, CCID %d: not frozen", name, ccid)
			}
			if s, ok := p.server.conn.tx.(*sender2); ok {
				s.cwnd = 500
			}
			c.thaw(p)
			p.run(15 * time.Millisecond)
			if c.both {
				p.server.conn.Unfreeze(p.now, false, nil)
			}
			if p.server.conn.Frozen() {
				t.Fatalf("%s, CCID %d: still frozen", name, ccid)
			}
			recovers := false
			switch s := p.server.conn.tx.(type) {
			case *sender2:
				recovers = s.cwnd < 100
			case *sender3:
				n := s.tfrc.FreezeCounts()
				recovers = n.Recoveries > n.Restored
			}
			if recovers != c.recovers {
				t.Errorf("%s, CCID %d: recovery %v", name, ccid, recovers)
			}
		}
	}
}

// refreeze ends a freeze to recovery, and another, later, without.
func refreeze(p *pair) {
	p.client.conn.Unfreeze(p.now, true, nil)
	p.run(2 * time.Second)
	p.client.conn.Freeze(p.now)
	p.run(100 * time.Millisecond)
	if s, ok := p.server.conn.tx.(*sender2); ok {
		s.cwnd = 500
	}
	p.client.conn.Unfreeze(p.now, false, nil)
}

// With a peer that lacks the extension, only this end stops.
func TestFreezeWithoutExtension(t *testing.T) {
	p := newPair(t, Config{}, Config{NoFreeze: true}).open()
	p.spacing = time.Millisecond
	p.client.fill, p.client.size = true, 500
	p.run(time.Second)
	p.keep = true
	p.client.conn.Freeze(p.now)
	if p.client.conn.freeze.say != 0 {
		t.Error("signals to a peer that does not know")
	}
	p.run(time.Second)
	before := p.server.count
	p.run(time.Second)
	if p.server.count != before || p.server.conn.Frozen() {
		t.Error("not this end alone")
	}
	p.client.conn.Unfreeze(p.now, true, nil)
	p.run(time.Second)
	if p.server.count == before {
		t.Error("does not go on")
	}
}

// The characteristics that come with Unfreeze bound the sender at the far end.
func TestUnfreezeTellsRate(t *testing.T) {
	p := stream(t, Config{CCIDs: []uint8{2}})
	p.client.conn.Freeze(p.now)
	p.run(time.Second)
	s := p.server.conn.tx.(*sender2)
	s.cwnd = 500
	lci := &mihf.LCI{CapacityDownBPS: mihf.Characteristic{Value: 8 * 1232 * 1000, Source: mihf.SourceMeasured}}
	p.client.conn.Unfreeze(p.now, false, lci)
	p.run(15 * time.Millisecond)
	if s.cwnd < 15 || s.cwnd > 60 {
		t.Errorf("cwnd %d", s.cwnd)
	}
}

// TestDropLastReachesSender: what a full receive buffer drops lowers the sender's window.
func TestDropLastReachesSender(t *testing.T) {
	for _, ccid := range []uint8{2, 3} {
		p := stream(t, Config{CCIDs: []uint8{ccid}})
		p.client.conn.DropLast(DropReceiveBuffer)
		if p.client.conn.SlowReceiver(true); len(p.client.conn.vec.drops) != 1 {
			t.Fatal("not noted")
		}
		p.run(time.Second)
		if n := len(p.client.conn.vec.drops); n != 0 {
			t.Errorf("CCID %d: %d drops are told for ever", ccid, n)
		}
	}
}
