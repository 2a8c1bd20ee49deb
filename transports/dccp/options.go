package dccp

import (
	"encoding/binary"
	"time"

	"mihf.dev/mihf"
)

// takeOptions reads the options of a packet (RFC 4340, section 5.8). Where one of them
// demands it, the connection is reset and a.stateReset set.
func (c *Conn) takeOptions(now mihf.Time, p *Packet, a *arrival) {
	if len(p.Options) == 0 {
		return
	}
	reordered := !c.feat.fgsr.Before(p.Seq)
	negotiates := false
	onlyData := p.Type == TypeData
	r := ReadOptions(p.Options)
	for o := (Option{}); r.Next(&o); {
		if onlyData && !onData(o.Type) {
			continue // Mandatory too is ignored on Data: section 5.8.2
		}
		var out outcome
		if o.Type >= optChangeL && o.Type <= optConfirmR {
			negotiates = true
			if reordered {
				continue
			}
			out = c.takeFeature(&o, p)
		} else {
			out = c.takeOption(now, &o, p, a)
		}
		switch {
		case out == invalid:
			a.stateReset = true
			c.endWith(now, ResetOptionError, optionData(o.Type, o.Data), ErrProtocol)
			return
		case out == notHandled && o.Mandatory && !onlyData:
			a.stateReset = true
			c.endWith(now, ResetMandatoryError, optionData(o.Type, o.Data), ErrProtocol)
			return
		}
	}
	if negotiates && !reordered {
		c.feat.fgsr = p.Seq
		c.afterFeatures(now)
	}
	switch {
	case onlyData:
	case r.Dangling:
		a.stateReset = true
		c.endWith(now, ResetOptionError, [3]byte{optMandatory}, ErrProtocol)
	case r.MandatoryLost:
		a.stateReset = true
		c.endWith(now, ResetMandatoryError, [3]byte{r.Lost}, ErrProtocol)
	}
}

// optionData is what a Reset tells of an option.
func optionData(t uint8, data []byte) (d [3]byte) {
	d[0] = t
	copy(d[1:], data)
	return d
}

// takeFeature takes a Change or Confirm that is not reordered.
func (c *Conn) takeFeature(o *Option, p *Packet) outcome {
	acked := p.Type.HasAck() && !p.Ack.Before(c.feat.fgss)
	out, w, i, changed := c.feat.take(o, acked, c.knows)
	if changed {
		c.featureChanged(w, i)
	}
	return out
}

// featureChanged does what a new value asks for.
func (c *Conn) featureChanged(w where, i index) {
	v := c.feat.value(w, i)
	switch {
	case i == fAckRatio && w == remote && c.rx != nil:
		c.rx.ackRatio(int(v))
	case i == fSendAckVec && w == local:
		c.vecTx = v == 1
	case i == fSeqWindow && w == local && c.tx != nil:
		c.tx.limit(int64(v))
	case i == fFreeze:
		c.freezeNegotiated()
	}
}

// afterFeatures sees that answers and Changes get onto a packet.
func (c *Conn) afterFeatures(now mihf.Time) {
	waiting, unanswered := c.feat.pending()
	if !unanswered {
		c.featBack = backoff{}
	} else {
		c.featBack.arm(now, c.rtt())
	}
	if waiting && c.state >= StatePartOpen {
		c.ackDue = true
	}
}

// takeOption takes an option that is not about features.
func (c *Conn) takeOption(now mihf.Time, o *Option, p *Packet, a *arrival) outcome {
	var ok bool
	switch o.Type {
	case optSlowReceiver:
		a.slow, ok = true, true
	case optInitCookie:
		ok = true // read by those who wait for it
	case optNDPCount:
		var n uint64
		n, ok = parseNDPCount(o.Data)
		a.ndp = uint32(min(n, 1<<32-1))
	case optAckVector0, optAckVector1:
		ok = p.Type.HasAck()
		if ok && a.nvectors < len(a.vectors) {
			a.vectors[a.nvectors] = o.Data
			a.nvectors++
		}
	case optDataDropped:
		ok = p.Type.HasAck()
		if ok && a.ndrops < len(a.drops) {
			a.drops[a.ndrops] = o.Data
			a.ndrops++
		}
	case optTimestamp:
		if ok = len(o.Data) == 4; ok {
			c.timing.owe(now, p.Seq, binary.BigEndian.Uint32(o.Data))
		}
	case optTimestampEcho:
		var stamp uint32
		var held time.Duration
		if stamp, held, ok = parseTimestampEcho(o.Data); ok {
			c.timing.echoed(now, stamp, held)
		}
	case optElapsedTime:
		if ok = p.Type.HasAck(); ok {
			var d time.Duration
			if d, ok = parseElapsed(o.Data); ok {
				a.elapsed = d
			}
		}
	case optHello:
		if ok = p.Type <= TypeResponse && len(o.Data) <= maxHello; ok && c.hello == nil {
			c.hello = append([]byte{}, o.Data...)
		}
	case optDataChecksum:
		if ok = len(o.Data) == 4; ok {
			a.checked, a.crc = true, binary.BigEndian.Uint32(o.Data)
		}
	case optFreeze, optUnfreeze:
		ok = p.Type.HasAck() && c.freezeInForce() && (len(o.Data) == 0 || len(o.Data) == 4 && o.Type == optUnfreeze)
		if ok {
			c.freezePeer(now, o.Type == optFreeze, p.Seq, o.Data)
		}
	default:
		ok = c.isCCID3(o.Type) && takeCCID3(o, p, a)
	}
	if ok {
		return done
	}
	return notHandled
}

// isCCID3 reports whether an option is of CCID 3, by the half-connection that its number
// names (section 10.3).
func (c *Conn) isCCID3(t uint8) bool {
	switch {
	case t >= 192:
		return c.feat.value(local, fCCID) == 3
	case t >= 128:
		return c.feat.value(remote, fCCID) == 3
	default:
		return false
	}
}

// takeCCID3 takes an option of CCID 3 or of the Freeze extension on it.
func takeCCID3(o *Option, p *Packet, a *arrival) (ok bool) {
	switch o.Type {
	case optRestoring:
		a.restoring, ok = true, len(o.Data) == 0
	case optProbing:
		a.probing, ok = true, len(o.Data) == 0
	case optUnfrozen:
		a.unfrozen, ok = true, len(o.Data) == 0
	case optLossEventRate:
		if ok = len(o.Data) == 4 && p.Type.HasAck(); ok {
			a.lossRate, a.hasLoss = binary.BigEndian.Uint32(o.Data), true
		}
	case optReceiveRate:
		if ok = len(o.Data) == 4 && p.Type.HasAck(); ok {
			a.recvRate, a.hasRate = binary.BigEndian.Uint32(o.Data), true
		}
	case optLossIntervals:
		if ok = len(o.Data) >= 1 && len(o.Data)%9 == 1 && p.Type.HasAck(); ok && a.intervals == nil {
			a.intervals = o.Data // a second option tells of older ones than are of use
		}
	}
	return ok
}

// keepCookies keeps the Init Cookies of a Response, to be echoed (section 8.1.4).
func (c *Conn) keepCookies(p *Packet) {
	r := ReadOptions(p.Options)
	for o := (Option{}); r.Next(&o); {
		if o.Type == optInitCookie && len(c.cookies)+2+len(o.Data) <= maxCookies {
			c.cookies = append(append(c.cookies, optInitCookie, byte(2+len(o.Data))), o.Data...)
		}
	}
}

// maxCookies bounds the Init Cookies that a client echoes, with their types and lengths.
const maxCookies = 2 * (2 + maxOptionData)
