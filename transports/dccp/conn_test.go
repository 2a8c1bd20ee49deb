package dccp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// RFC 4340, section 8.1: the three-way handshake, and what is agreed in it.
func TestHandshake(t *testing.T) {
	for _, ccids := range [][]uint8{{2}, {3}, {2, 3}, {3, 2}} {
		for _, cookies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v cookies %v", ccids, cookies), func(t *testing.T) {
				p := newPair(t, Config{CCIDs: ccids, Service: 42}, Config{})
				p.cookies, p.keep = cookies, true
				p.run(100 * time.Millisecond)
				if p.server.conn == nil {
					t.Fatal("no connection at the server")
				}
				p.run(time.Second)
				p.wantStates(StateOpen, StateOpen)
				for _, e := range []*end{p.client, p.server} {
					if tx, rx := e.conn.CCIDs(); tx != ccids[0] && len(ccids) == 1 || tx != rx {
						t.Errorf("%s: CCIDs %d, %d", e.name, tx, rx)
					}
					if !e.conn.freezeInForce() {
						t.Errorf("%s: freeze not agreed", e.name)
					}
					if got := e.conn.RTT(); got < 20*time.Millisecond || got > 21*time.Millisecond {
						t.Errorf("%s: RTT %v", e.name, got)
					}
					if w := e.conn.feat.value(local, fSeqWindow); w != 1024 {
						t.Errorf("%s: window %d", e.name, w)
					}
				}
				if got := p.server.conn.Service(); got != 42 {
					t.Errorf("service %v", got)
				}
				if len(p.log) > 8 {
					t.Errorf("chatter: %v", p.log)
				}
			})
		}
	}
}

// A CCID that one end does not have resets the connection: section 10, "MUST send
// Mandatory Change(CCID)".
func TestNoSharedCCID(t *testing.T) {
	p := newPair(t, Config{CCIDs: []uint8{3}}, Config{CCIDs: []uint8{2}})
	p.run(5 * time.Second)
	var reset *ResetError
	if !errors.As(p.client.conn.Err(), &reset) || reset.Code != ResetMandatoryError {
		t.Errorf("client: %v", p.client.conn.Err())
	}
}

func TestDataBothWays(t *testing.T) {
	for _, ccid := range []uint8{2, 3} {
		t.Run(fmt.Sprint(ccid), func(t *testing.T) {
			p := newPair(t, Config{CCIDs: []uint8{ccid}}, Config{}).open()
			for i := range 20 {
				p.client.queue = append(p.client.queue, fmt.Appendf(nil, "c%d", i))
				p.server.queue = append(p.server.queue, fmt.Appendf(nil, "s%d", i))
			}
			p.server.queue = append(p.server.queue, []byte{})
			p.run(5 * time.Second)
			if len(p.server.got) != 20 || len(p.client.got) != 21 || p.client.got[20] != "" || p.server.got[7] != "c7" {
				t.Errorf("got %q and %q", p.server.got, p.client.got)
			}
		})
	}
}

// Section 8.3: the three ways to end, and who has the TIMEWAIT.
func TestClose(t *testing.T) {
	t.Run("client", func(t *testing.T) {
		p := newPair(t, Config{}, Config{}).open()
		p.keep = true
		p.client.conn.Close(p.now)
		p.run(time.Second)
		p.wantLog("client Close", "server Reset")
		p.wantStates(StateTimeWait, StateClosed)
		p.run(4*time.Minute + time.Second)
		p.wantStates(StateClosed, StateClosed)
	})
	t.Run("server", func(t *testing.T) {
		p := newPair(t, Config{}, Config{}).open()
		p.keep = true
		p.server.conn.Close(p.now)
		p.run(time.Second)
		p.wantLog("server CloseReq", "client Close", "server Reset")
		p.wantStates(StateTimeWait, StateClosed)
	})
	t.Run("both", func(t *testing.T) {
		p := newPair(t, Config{}, Config{}).open()
		p.client.conn.Close(p.now)
		p.server.conn.Close(p.now)
		p.run(time.Second)
		if !p.client.conn.Done() || !p.server.conn.Done() {
			p.wantStates(StateClosed, StateClosed)
		}
	})
	t.Run("lost", func(t *testing.T) {
		p := newPair(t, Config{}, Config{}).open()
		lost := 0
		p.fate = func(*end, []byte) time.Duration {
			if lost++; lost <= 3 {
				return -1
			}
			return 0
		}
		p.client.conn.Close(p.now)
		p.run(5 * time.Second)
		p.wantStates(StateTimeWait, StateClosed)
	})
	t.Run("peer gone", func(t *testing.T) {
		p := newPair(t, Config{}, Config{}).open()
		p.fate = func(*end, []byte) time.Duration { return -1 }
		p.client.conn.Close(p.now)
		p.run(3 * time.Minute)
		if !p.client.conn.Done() {
			t.Error("client never ends")
		}
	})
	t.Run("abort", func(t *testing.T) {
		p := newPair(t, Config{}, Config{}).open()
		p.client.conn.Abort(p.now)
		p.run(time.Second)
		var reset *ResetError
		if err := p.server.conn.Err(); !errors.As(err, &reset) || reset.Code != ResetAborted {
			t.Errorf("server: %v", err)
		}
		if err := p.client.conn.Err(); !errors.Is(err, ErrClosed) {
			t.Errorf("client: %v", err)
		}
	})
}

// Section 8.1.1: Requests are repeated after 1, 2, 4 s, with rising numbers, then given
// up with a Reset that acknowledges 0.
func TestRequestIsRepeated(t *testing.T) {
	p := newPair(t, Config{ConnectTimeout: 20 * time.Second}, Config{})
	var at []time.Duration
	start := p.now
	last := Packet{}
	p.fate = func(_ *end, b []byte) time.Duration {
		at = append(at, p.now.Sub(start))
		_ = last.Parse(b)
		return -1
	}
	p.run(time.Minute)
	want := "[0s 1s 3s 7s 15s 20s]"
	if fmt.Sprint(at) != want {
		t.Errorf("sent at %v, want %s", at, want)
	}
	if last.Type != TypeReset || last.Code != ResetAborted || last.Ack != 0 || last.Seq != 1_000_005 {
		t.Errorf("last was %+v", last)
	}
	if err := p.client.conn.Err(); !errors.Is(err, ErrTimeout) {
		t.Errorf("error %v", err)
	}
}

// Any loss of any packet of the handshake only delays it.
func TestHandshakeOverLossyPath(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		ccid := uint8(2 + seed%2)
		p := newPair(t, Config{CCIDs: []uint8{ccid}}, Config{CCIDs: []uint8{2, 3}, Keepalive: -1})
		p.cookies = seed%3 == 0
		p.fate = lossy(r, 0.4, 5*time.Millisecond)
		p.client.conn.cfg.Keepalive = -1
		p.client.queue = [][]byte{[]byte("x")}
		p.run(20 * time.Minute) // Changes are repeated more and more seldom
		if p.client.conn.State() != StateOpen || p.server.conn == nil || p.server.conn.State() != StateOpen {
			t.Fatalf("seed %d: client %v %v, server %v", seed, p.client.conn.State(), p.client.conn.Err(), serverErr(p))
		}
		for _, e := range []*end{p.client, p.server} {
			if tx, rx := e.conn.CCIDs(); tx != ccid || rx != ccid {
				t.Fatalf("seed %d: %s has CCIDs %d %d", seed, e.name, tx, rx)
			}
			if waiting, unanswered := e.conn.feat.pending(); waiting || unanswered {
				t.Fatalf("seed %d: %s still negotiates: %+v", seed, e.name, e.conn.feat)
			}
		}
		if p.client.conn.feat.at[local] != mirror(p.client.conn, p.server.conn) {
			t.Fatalf("seed %d: the ends disagree:\n%+v\n%+v", seed, p.client.conn.feat.at, p.server.conn.feat.at)
		}
	}
}

// mirror returns a's features with the values that b holds of them.
func mirror(a, b *Conn) [numFeatures]feature {
	f := a.feat.at[local]
	for i := range f {
		f[i].value = b.feat.at[remote][i].value
	}
	return f
}

// Section 7.5.4 and 7.5.6: after a burst of loss that leaves the window, Sync and
// SyncAck bring the ends together again.
func TestSyncAfterBurst(t *testing.T) {
	p := newPair(t, Config{SequenceWindow: 100}, Config{}).open()
	p.run(10 * time.Second)
	c := p.client.conn
	for range 200 {
		c.build(p.now, nil, TypeAck, c.gsr, nil) // never gets there
	}
	p.keep = true
	p.send(p.client, c.build(p.now, nil, TypeAck, c.gsr, nil))
	p.run(time.Second)
	p.wantLog("client Ack", "server Sync", "client SyncAck")
	if p.server.conn.gsr != c.gss {
		t.Errorf("server has heard %d of %d", p.server.conn.gsr, c.gss)
	}
	p.client.queue = [][]byte{[]byte("on")}
	p.run(time.Second)
	if len(p.server.got) != 1 {
		t.Errorf("got %q", p.server.got)
	}
}

// The half-open example of section 7.5.6: a client that crashed and asks again.
func TestHalfOpen(t *testing.T) {
	p := newPair(t, Config{}, Config{}).open()
	p.run(time.Second)
	c, err := NewClient(Config{SrcPort: 1000, DstPort: 2000}, 400)
	if err != nil {
		t.Fatal(err)
	}
	p.client.conn = c
	p.keep = true
	p.run(500 * time.Millisecond)
	// The first Reset's numbers are the Request's, which the server cannot accept; its
	// second Sync asks for the right ones.
	p.wantLog("client Request", "server Sync", "client Reset", "server Sync", "client Reset")
	var reset *ResetError
	if err := serverErr(p); !errors.As(err, &reset) || reset.Code != ResetPacketError {
		t.Errorf("server: %v", err)
	}
	p.server.conn = nil // the listener's again
	p.run(2 * time.Second)
	p.wantStates(StateOpen, StateOpen)
}

func TestKeepalive(t *testing.T) {
	p := newPair(t, Config{Keepalive: time.Minute}, Config{Keepalive: -1}).open()
	p.keep = true
	p.run(62 * time.Second)
	p.wantLog("client Sync", "server SyncAck")
	p.fate = func(*end, []byte) time.Duration { return -1 }
	p.run(2*time.Minute + time.Second)
	if err := p.client.conn.Err(); !errors.Is(err, ErrTimeout) {
		t.Errorf("client: %v", err)
	}
	p.wantStates(StateClosed, StateOpen)
}

// Data gets through a path that loses, reorders and duplicates; each datagram at most
// once, and none that was not sent.
func TestTransferOverBadPath(t *testing.T) {
	for _, ccid := range []uint8{2, 3} {
		t.Run(fmt.Sprint(ccid), func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 7))
			p := newPair(t, Config{CCIDs: []uint8{ccid}}, Config{}).open()
			p.fate = lossy(r, 0.02, time.Millisecond)
			const n = 3000
			for i := range n {
				p.client.queue = append(p.client.queue, fmt.Appendf(nil, "%d", i))
			}
			p.run(10 * time.Minute)
			if len(p.client.queue) > 0 {
				t.Fatalf("%d still wait", len(p.client.queue))
			}
			seen := map[string]bool{}
			for _, g := range p.server.got {
				if seen[g] {
					t.Fatalf("%s came twice", g)
				}
				seen[g] = true
			}
			if len(seen) < n*95/100 || len(seen) > n {
				t.Errorf("%d of %d came", len(seen), n)
			}
			s := p.client.conn.Stats()
			t.Logf("%d of %d came; client says %+v", len(seen), n, s)
			// Some come so late that the sender had them for lost and no longer asks.
			if lost := n - len(seen); ccid == 2 && (int(s.DataLost) < lost || int(s.DataLost) > lost+n/50) {
				t.Errorf("%d lost, says %d", lost, s.DataLost)
			}
		})
	}
}
