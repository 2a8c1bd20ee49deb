package dccp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"time"

	"mihf.dev/mihf"
)

// Tuple names a connection: addresses, with the ports of what carries DCCP where that has
// its own (RFC 6773, section 3.8), and DCCP's own ports.
type Tuple struct {
	Local, Remote         netip.AddrPort
	LocalPort, RemotePort uint16
}

func (t *Tuple) append(b []byte) []byte {
	for _, a := range []netip.AddrPort{t.Local, t.Remote} {
		ip := a.Addr().As16()
		b = append(b, ip[:]...)
		b = binary.BigEndian.AppendUint16(b, a.Port())
	}
	b = binary.BigEndian.AppendUint16(b, t.LocalPort)
	return binary.BigEndian.AppendUint16(b, t.RemotePort)
}

// isnTick is the clock of initial sequence numbers: their low 24 bits come around after
// 268 s, more than two segment lifetimes (RFC 4340, section 7.2).
const isnTick = 16 * time.Microsecond

// InitialSeq chooses the first sequence number of a connection: each tuple has a space of
// its own, which only who knows the secret can tell, and in it a clock (RFC 4340, section
// 7.2; RFC 1948).
func InitialSeq(secret [32]byte, t Tuple, now mihf.Time) Seq {
	return initialSeq(secret[:], t, now)
}

func initialSeq(secret []byte, t Tuple, now mihf.Time) Seq {
	return tupleSpace(secret, t).Add(int64(time.Duration(now) / isnTick & (1<<47 - 1)))
}

func tupleSpace(secret []byte, t Tuple) Seq {
	sum := mac(secret, "isn", t, nil)
	return Seq(uint48(sum[:]))
}

// mac authenticates body for a tuple and a purpose.
func mac(secret []byte, purpose string, t Tuple, body []byte) [sha256.Size]byte {
	h := hmac.New(sha256.New, secret)
	var room [64]byte
	h.Write(t.append(append(room[:0], purpose...)))
	h.Write(body)
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return sum
}

// An Init Cookie holds what the Response was made of, and a code over it and the tuple:
//
//	time 8 | ISS 6 | sequence number of the Request 6 | service code 4 | its options | code 16
const (
	cookieFixed  = 8 + 6 + 6 + 4
	cookieCode   = 16
	cookieLife   = time.Minute
	maxCookie    = 2 * maxOptionData
	cookieOption = maxCookie - cookieFixed - cookieCode // the most that options of a Request can be
)

// answerWithCookie makes the Response to a Request, and forgets it.
func (l *Listener) answerWithCookie(now mihf.Time, t Tuple, p *Packet) []byte {
	if len(p.Options) > cookieOption {
		return l.reset(now, p, ResetTooBusy)
	}
	// A Request that is repeated has a higher number, and so has its Response.
	iss := tupleSpace(l.cfg.Secret[:], t).Add(int64(p.Seq))
	b := binary.BigEndian.AppendUint64(l.buf[:0], uint64(now))
	b = appendUint48(b, uint64(iss))
	b = appendUint48(b, uint64(p.Seq))
	b = binary.BigEndian.AppendUint32(b, uint32(p.Service))
	b = append(b, p.Options...)
	sum := mac(l.cfg.Secret[:], "cookie", t, b)
	b = append(b, sum[:cookieCode]...)
	l.buf = b

	c := &l.scratch
	l.respond(now, c, p, iss)
	c.cookies = c.cookies[:0]
	for len(b) > 0 {
		n := min(len(b), maxOptionData)
		c.cookies = append(append(c.cookies, optInitCookie, byte(2+n)), b[:n]...)
		b = b[n:]
	}
	l.stats.CookiesSent++
	out, _ := c.Poll(now, nil, nil, false)
	return out
}

// gatherCookies puts the Init Cookies of a packet together.
func gatherCookies(options []byte) (body []byte, found bool) {
	r := ReadOptions(options)
	for o := (Option{}); r.Next(&o); {
		if o.Type == optInitCookie {
			if found = true; body == nil {
				body = o.Data
			} else {
				body = append(body, o.Data...)
			}
		}
	}
	return body, found
}

// takeCookie makes the connection that a cookie stands for.
func (l *Listener) takeCookie(now mihf.Time, t Tuple, p *Packet, b []byte) (*Conn, []byte) {
	n := len(b) - cookieCode
	if n < cookieFixed {
		l.stats.BadCookies++
		return nil, l.reset(now, p, ResetBadInitCookie)
	}
	sum := mac(l.cfg.Secret[:], "cookie", t, b[:n])
	made := mihf.Time(binary.BigEndian.Uint64(b))
	if !hmac.Equal(sum[:cookieCode], b[n:]) || now.Sub(made) > cookieLife || now < made {
		l.stats.BadCookies++
		return nil, l.reset(now, p, ResetBadInitCookie)
	}
	request := Packet{
		SrcPort: p.SrcPort, DstPort: p.DstPort, Type: TypeRequest, Extended: true,
		Seq: Seq(uint48(b[14:])), Service: ServiceCode(binary.BigEndian.Uint32(b[20:])), Options: b[cookieFixed:n],
	}
	c := new(Conn)
	l.respond(made, c, &request, Seq(uint48(b[8:])))
	c.Poll(made, nil, nil, false) // the Response that went before
	c.deadline = now.Add(handshakeMost)
	l.stats.CookiesAccepted++
	return c, nil
}
