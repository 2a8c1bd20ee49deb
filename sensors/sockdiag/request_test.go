package sockdiag

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

// machine is the kernel's interpreter of filters (net/ipv4/inet_diag.c): audit is what it asks of a program
// before it takes it, and run what it answers for a socket.
type machine []byte

func (m machine) op(at int) (code byte, yes, no int) {
	return m[at], int(m[at+1]), int(native.Uint16(m[at+2:]))
}

// reaches reports whether an offset is where an instruction begins, or the end.
func (m machine) reaches(to int) bool {
	at := 0
	for at < to && at < len(m) {
		_, yes, _ := m.op(at)
		if yes < opSize || yes%4 != 0 {
			return false
		}
		at += yes
	}
	return at == to
}

func (m machine) audit(t *rapid.T) {
	for at := 0; at < len(m); {
		left := len(m) - at
		code, yes, no := m.op(at)
		least := opSize
		switch code {
		case opSource, opDest:
			least += condSize
			size := map[byte]int{unix.AF_UNSPEC: 0, unix.AF_INET: 4, unix.AF_INET6: 16}[m[at+4]]
			if int(m[at+5]) > 8*size {
				t.Fatalf("prefix of %d bits for a family of %d octets", m[at+5], size)
			}
			least += size
		case opJump:
		default:
			t.Fatalf("code %d", code)
		}
		if no < least || no > left+4 || no%4 != 0 || (no < left && !m.reaches(at+no)) {
			t.Fatalf("at %d of %d: no leads %d on, of %d", at, len(m), no, left)
		}
		if yes < least || yes > left+4 || yes%4 != 0 {
			t.Fatalf("at %d of %d: yes leads %d on", at, len(m), yes)
		}
		at += yes
	}
}

func (m machine) run(s *mihf.Endpoints) bool {
	at := 0
	for at < len(m) {
		code, yes, no := m.op(at)
		ok := true
		switch code {
		case opSource:
			ok = m.cond(at+4, s.Local)
		case opDest:
			ok = m.cond(at+4, s.Remote)
		case opJump:
			ok = false
		}
		if ok {
			at += yes
		} else {
			at += no
		}
	}
	return at == len(m)
}

func (m machine) cond(at int, end netip.AddrPort) bool {
	if port := int32(native.Uint32(m[at+4:])); port != anyPort && port != int32(end.Port()) {
		return false
	}
	switch m[at] {
	case unix.AF_INET:
		return end.Addr() == netip.AddrFrom4([4]byte(m[at+8:]))
	case unix.AF_INET6:
		return end.Addr() == netip.AddrFrom16([16]byte(m[at+8:]))
	default:
		return true
	}
}

var (
	someAddrs = rapid.SampledFrom([]netip.Addr{
		netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"),
	})
	somePorts = rapid.SampledFrom([]uint16{22, 443, 40000})
)

// The kernel takes each program, and chooses the sockets that meet an alternative.
func TestProgram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) (e endpoint) {
			if rapid.Bool().Draw(t, label+" addr?") {
				e.addr = someAddrs.Draw(t, label)
			}
			if rapid.Bool().Draw(t, label+" port?") {
				e.port = somePorts.Draw(t, label+" port")
			}
			return e
		}
		filter := make([]alternative, rapid.IntRange(1, 6).Draw(t, "n"))
		everything := false
		for i := range filter {
			filter[i] = alternative{draw("local"), draw("remote")}
			everything = everything || (filter[i].local.any() && filter[i].remote.any())
		}
		m := machine(program(filter))
		if everything {
			if m != nil {
				t.Fatalf("%v chooses everything; want no program", filter)
			}
			return
		}
		m.audit(t)
		meets := func(e endpoint, is netip.AddrPort) bool {
			return (!e.addr.IsValid() || e.addr == is.Addr()) && (e.port == 0 || e.port == is.Port())
		}
		for range 20 {
			s := mihf.Endpoints{
				Local:  netip.AddrPortFrom(someAddrs.Draw(t, "is"), somePorts.Draw(t, "is port")),
				Remote: netip.AddrPortFrom(someAddrs.Draw(t, "to"), somePorts.Draw(t, "to port")),
			}
			want := false
			for _, a := range filter {
				want = want || (meets(a.local, s.Local) && meets(a.remote, s.Remote))
			}
			if got := m.run(&s); got != want {
				t.Fatalf("%v: %v, want %v of %v", s, got, want, filter)
			}
		}
	})
}

// The largest filter fits; beyond it, and without one, all are asked for.
func TestRequestSizes(t *testing.T) {
	large := make([]alternative, maxAlternatives)
	for i := range large {
		large[i] = alternative{endpoint{netip.MustParseAddr("2001:db8::1"), 1}, endpoint{netip.MustParseAddr("2001:db8::2"), 2}}
	}
	code := program(large)
	rapid.Check(t, func(t *rapid.T) { machine(code).audit(t) })
	b := request(unix.AF_INET6, large)
	if n := int(native.Uint16(b[reqSize:])); n != len(b)-reqSize || len(b) != reqSize+opSize+len(code) {
		t.Errorf("attribute of %d octets in %d", n, len(b)-reqSize)
	}
	for _, filter := range [][]alternative{nil, make([]alternative, maxAlternatives+1)} {
		if b := request(unix.AF_INET, filter); len(b) != reqSize || b[0] != unix.AF_INET || b[1] != unix.IPPROTO_TCP {
			t.Errorf("%d alternatives: %v", len(filter), b)
		}
	}
}
