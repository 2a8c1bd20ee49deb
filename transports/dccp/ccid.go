package dccp

import (
	"time"

	"mihf.dev/mihf"
)

// sender is the congestion control of a half-connection at its data sender (RFC 4340,
// section 10).
type sender interface {
	// ready is the moment from which a datagram of the length may be sent; zero: not
	// before something arrives or a timer ends.
	ready(now mihf.Time, bytes int) mihf.Time
	// data takes a packet with data that is sent, and returns its CCVal.
	data(now mihf.Time, seq Seq, bytes int) uint8
	// other takes a packet without data that is sent.
	other(now mihf.Time, seq Seq)
	// acknowledged takes that the packet that was just sent has an acknowledgement number.
	acknowledged()
	// wantsAck reports whether the next packet with data is to have one.
	wantsAck() bool
	// options appends what goes on packets with data.
	options(b []byte) []byte
	// acked takes a packet that acknowledges.
	acked(now mihf.Time, a *arrival)
	// limit takes the Sequence Window in force.
	limit(window int64)
	// window is how many packets a round-trip may have in flight.
	window() int64
	// wantsRatio is the Ack Ratio that is wanted; 0: as it is.
	wantsRatio() int

	freeze(now mihf.Time)
	thaw(now mihf.Time, t *thaw)
	// extension tells whether the receiver has the Freeze extension.
	extension(has bool)
	// moved takes that the path has changed and nothing is known of the new one.
	moved(now mihf.Time)

	lost() uint64
	next() mihf.Time
	advance(now mihf.Time)
}

// receiver is the congestion control of a half-connection at its data receiver.
type receiver interface {
	// received takes a packet and reports whether an Ack is to go at once.
	received(now mihf.Time, a *arrival) bool
	// feedback appends the options of an Ack that goes now.
	feedback(now mihf.Time, b []byte) []byte
	// usesVector reports whether Acks need Ack Vectors.
	usesVector() bool
	ackRatio(n int)
	next() mihf.Time
	// advance reports whether an Ack is to go at once.
	advance(now mihf.Time) bool
}

// activate starts the congestion controls that were agreed on. From here on they stay:
// section 10.5 allows to refuse a change.
func (c *Conn) activate(now mihf.Time) {
	tx, rx := c.CCIDs()
	c.feat.at[local][fCCID].prefer(tx)
	c.feat.at[remote][fCCID].prefer(rx)
	if rx == 3 {
		c.rx = newReceiver3(c)
		c.want(now, remote, fSendNDP)
	} else {
		c.rx = &receiver2{ratio: int(c.feat.value(remote, fAckRatio)), conn: c}
	}
	if tx == 3 {
		c.tx = newSender3(c)
		c.want(now, remote, fSendLossRate)
	} else {
		c.tx = newSender2(now, c)
		c.want(now, remote, fSendAckVec)
	}
	c.tx.limit(int64(c.feat.value(local, fSeqWindow)))
}

// want asks for a feature to be on, unless it is or that is being negotiated.
func (c *Conn) want(now mihf.Time, w where, i index) {
	if f := &c.feat.at[w][i]; f.value != 1 && f.state == stable {
		c.feat.begin(w, i, 0, false)
		c.afterFeatures(now)
	}
}

// receiver2 is the receiver of CCID 2 (RFC 4341): it acknowledges every so many packets
// with data, and the last after a while. What came is in the connection's Ack Vector.
type receiver2 struct {
	conn  *Conn
	ratio int // Ack Ratio; 0: as 1
	count int // packets with data since the last Ack
	timer mihf.Time
	hole  mihf.Time // when a hole was last acknowledged at once
}

// delayedAck is how long an Ack can wait for more packets: less than the 0.2 s of RFC
// 4340, section 11.3.
const delayedAck = 40 * time.Millisecond

func (r *receiver2) received(now mihf.Time, a *arrival) bool {
	if !a.isData() {
		return false
	}
	r.count++
	if r.timer.IsZero() {
		r.timer = now.Add(delayedAck)
	}
	if a.missed > 0 && now.Sub(r.hole) >= r.conn.rtt() {
		r.hole = now
		return true
	}
	return r.count >= r.ratio
}

func (r *receiver2) feedback(_ mihf.Time, b []byte) []byte {
	r.count, r.timer = 0, 0
	return b
}

func (r *receiver2) usesVector() bool { return true }

func (r *receiver2) ackRatio(n int) { r.ratio = n }

func (r *receiver2) next() mihf.Time { return r.timer }

func (r *receiver2) advance(now mihf.Time) bool {
	if !r.timer.Due(now) {
		return false
	}
	r.timer = 0
	return r.count > 0
}
