package dccp

import (
	"encoding/binary"
	"time"

	"mihf.dev/mihf"
)

// thaw is how a sender goes on after a freeze.
type thaw struct {
	recovery       bool          // probe, do not restore
	bytesPerSecond float64       // what the path is known to hold; 0: not known
	rtt            time.Duration // of the path; 0: not known
}

// freezing is the Freeze extension at the level of the connection: who has stopped the
// data, and the option that tells the peer. Our sender is frozen while either end wants
// it.
type freezing struct {
	here, there  bool // who asked for it
	hereUntil    mihf.Time
	thereUntil   mihf.Time
	restore      thaw // as the last thaw of this end had it
	peerRecovery bool // the peer's freeze, which ended before ours, ended to recovery

	say      uint8 // optFreeze or optUnfreeze until the peer has it; 0: nothing
	told     bool  // a packet has carried it
	first    Seq   // the first that did
	again    backoff
	tries    int
	rate     uint32 // bytes a second, with optUnfreeze; 0: not known
	recovery bool   // with optUnfreeze: to that
	heard    Seq    // newest packet whose option was applied
	before   bool   // heard is set
}

// Copies of a signal: Freeze is of use before the link is gone only, Unfreeze always.
const (
	freezeTries = 8
	signalMost  = time.Second
)

func (f *freezing) frozen() bool { return f.here || f.there }

func (f *freezing) next() mihf.Time {
	until := mihf.Sooner(f.hereUntil, f.thereUntil)
	if f.say == 0 {
		return until
	}
	return mihf.Sooner(until, f.again.at)
}

// tell starts to send an option to the peer.
func (f *freezing) tell(option uint8) {
	f.say, f.told, f.tries, f.again = option, false, 0, backoff{}
}

// signal returns the type of a packet that is to carry the option now. A Sync must be
// answered, so that we learn whether it came.
func (f *freezing) signal(now mihf.Time, rtt time.Duration) (Type, bool) {
	switch {
	case f.say == 0:
		return 0, false
	case f.tries == 0:
		f.again.arm(now, max(rtt/4, 2*time.Millisecond))
	case !f.again.fire(now):
		return 0, false
	}
	f.tries++
	if f.say == optFreeze && f.tries > freezeTries {
		f.say = 0
		return 0, false
	}
	if f.again.every > signalMost {
		f.again.every, f.again.at = signalMost, now.Add(signalMost)
	}
	return TypeSync, true
}

// append puts the option onto a packet that acknowledges.
func (f *freezing) append(b []byte, seq Seq) []byte {
	if f.say == 0 {
		return b
	}
	if !f.told {
		f.told, f.first = true, seq
	}
	switch {
	case f.say == optUnfreeze && f.recovery:
		return appendOption32(b, optUnfreeze, 0)
	case f.say == optUnfreeze && f.rate > 0:
		return appendOption32(b, optUnfreeze, f.rate)
	}
	return appendOption(b, f.say)
}

// acked takes that the peer has a packet: if it is one with the option, the peer has
// that. Each packet since the first carries it.
func (f *freezing) acked(ack Seq) {
	if f.say != 0 && f.told && !ack.Before(f.first) {
		f.say = 0
	}
}

// freezeInForce reports whether both ends know the extension.
func (c *Conn) freezeInForce() bool {
	return c.feat.value(local, fFreeze) == 1 && c.feat.value(remote, fFreeze) == 1
}

// freezeNegotiated takes that the extension may be in force now, and tells the peer of a
// freeze that came before.
func (c *Conn) freezeNegotiated() {
	if c.tx != nil {
		c.tx.extension(c.freezeInForce())
	}
	if c.freezeInForce() && c.freeze.here && c.freeze.say == 0 && c.freeze.tries == 0 {
		c.freeze.tell(optFreeze)
	}
}

// Frozen reports whether our data is held back by a freeze, of this end or the peer's.
func (c *Conn) Frozen() bool { return c.freeze.frozen() }

// Freeze stops the data in both directions, keeping rates and round-trip times: ours at
// once, the peer's as soon as it is told, if it knows the extension. It is to be called
// one round-trip before the path is gone. A freeze ends by [Conn.Unfreeze], or after
// Config.MaxFreeze to recovery.
func (c *Conn) Freeze(now mihf.Time) {
	f := &c.freeze
	if !c.Open() || f.here {
		return
	}
	c.stats.FreezesLocal++
	if !f.frozen() {
		c.tx.freeze(now)
		f.peerRecovery = false
	}
	f.here, f.hereUntil = true, now.Add(c.cfg.MaxFreeze)
	if c.freezeInForce() {
		f.tell(optFreeze)
	}
}

// Unfreeze ends a freeze of this end. Recovery tells that nobody knows what is left of
// the path: the senders then probe instead of going on at the old rate. lci, where known,
// tells what the path holds: ours as capacity up, the peer's as capacity down.
func (c *Conn) Unfreeze(now mihf.Time, recovery bool, lci *mihf.LCI) {
	f := &c.freeze
	if !f.here {
		return
	}
	f.here, f.hereUntil, f.rate, f.recovery = false, 0, 0, recovery
	f.restore = thaw{recovery: recovery || f.peerRecovery}
	if lci != nil {
		if lci.CapacityUpBPS.Known() {
			f.restore.bytesPerSecond = max(lci.CapacityUpBPS.Value/8, 1)
		}
		if lci.RTTSeconds.Known() {
			f.restore.rtt = time.Duration(lci.RTTSeconds.Value * float64(time.Second))
		}
		if lci.CapacityDownBPS.Known() {
			f.rate = uint32(min(max(lci.CapacityDownBPS.Value/8, 1), 1<<32-1))
		}
	}
	if c.freezeInForce() {
		f.tell(optUnfreeze)
	}
	c.thawIfFree(now, &f.restore)
}

// thawIfFree lets our data go on, unless the other end still holds it.
func (c *Conn) thawIfFree(now mihf.Time, t *thaw) {
	if c.freeze.frozen() {
		return
	}
	c.heard = now // the silence was ours
	if c.tx != nil {
		c.tx.thaw(now, t)
	}
}

// freezePeer takes the peer's option on packet seq; data is its rate, if it has one, where
// 0 is recovery.
func (c *Conn) freezePeer(now mihf.Time, on bool, seq Seq, data []byte) {
	f := &c.freeze
	if c.tx == nil || f.before && !f.heard.Before(seq) {
		return
	}
	f.heard, f.before = seq, true
	if on == f.there {
		return // a copy
	}
	f.there = on
	if on {
		c.stats.FreezesPeer++
		if !f.here {
			c.tx.freeze(now)
			f.restore = thaw{} // what this end knew was of another freeze
		}
		f.thereUntil, f.peerRecovery = now.Add(c.cfg.MaxFreeze), false
		return
	}
	f.thereUntil = 0
	t := f.restore
	if len(data) == 4 {
		if rate := binary.BigEndian.Uint32(data); rate > 0 {
			t.bytesPerSecond = float64(rate)
		} else {
			t.recovery, f.peerRecovery = true, true
		}
	}
	c.thawIfFree(now, &t)
	f.restore = thaw{}
}

// advanceFreeze ends a freeze that lasted too long, of each end by itself.
func (c *Conn) advanceFreeze(now mihf.Time) {
	f := &c.freeze
	here, there := f.hereUntil.Due(now), f.thereUntil.Due(now)
	if !here && !there {
		return
	}
	if here {
		f.here, f.hereUntil, f.restore, f.rate, f.recovery = false, 0, thaw{recovery: true}, 0, true
		if c.freezeInForce() {
			f.tell(optUnfreeze)
		}
	}
	if there {
		f.there, f.thereUntil, f.peerRecovery = false, 0, true
	}
	c.thawIfFree(now, &thaw{recovery: true})
}

// Moved tells that the path has changed, to another address or link. Without a freeze
// nothing is known of the new one, and the congestion control starts anew (section 10.5);
// with one, its thaw decides.
func (c *Conn) Moved(now mihf.Time) {
	if c.tx != nil && !c.freeze.frozen() {
		c.tx.moved(now)
	}
}
