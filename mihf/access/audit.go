package access

import (
	"time"

	"mihf.dev/mihf"
)

// MaxLines bounds the lines of one identity in any second that begins with one.
const MaxLines = 5

// maxAudited bounds the identities that an Audit tells apart. Those beyond share one.
const maxAudited = 1024

// Audit says which refusals are worth a line. The zero value is ready.
type Audit struct {
	of     map[mihf.Identity]*lines
	forgot mihf.Time // when room was last made
}

// lines are those of one identity.
type lines struct {
	began      mihf.Time // of the second
	written    int       // in it
	suppressed uint64    // since the last line
}

// Refuse takes a refusal and reports whether it gets a line, and for how many that got
// none since the identity's last one it speaks.
func (a *Audit) Refuse(now mihf.Time, who mihf.Identity) (line bool, suppressed uint64) {
	l := a.lines(now, who)
	if now.Sub(l.began) >= time.Second {
		l.began, l.written = now, 0
	}
	if l.written >= MaxLines {
		l.suppressed++
		return false, 0
	}
	l.written++
	suppressed, l.suppressed = l.suppressed, 0
	return true, suppressed
}

// lines finds those of an identity, and makes room for it.
func (a *Audit) lines(now mihf.Time, who mihf.Identity) *lines {
	if l := a.of[who]; l != nil {
		return l
	}
	if a.of == nil {
		a.of = map[mihf.Identity]*lines{}
	}
	if len(a.of) >= maxAudited && now.Sub(a.forgot) >= time.Second {
		a.forget(now)
	}
	if len(a.of) >= maxAudited {
		who = mihf.Identity{}
		if l := a.of[who]; l != nil {
			return l
		}
	}
	l := &lines{began: now}
	a.of[who] = l
	return l
}

// forget drops identities that a new one would be equal to.
func (a *Audit) forget(now mihf.Time) {
	a.forgot = now
	for who, l := range a.of {
		if l.suppressed == 0 && now.Sub(l.began) >= time.Second {
			delete(a.of, who)
		}
	}
}
