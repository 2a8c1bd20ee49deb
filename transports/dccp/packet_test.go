package dccp

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Each layout of RFC 4340, sections 5.1 to 5.7, byte by byte.
func TestPacketLayouts(t *testing.T) {
	for name, c := range map[string]struct {
		hex string
		p   Packet
	}{
		"Request": {
			"1234 1389 05 00 0000 01 00 112233445566 6d6f6269 61",
			Packet{Type: TypeRequest, Extended: true, Seq: 0x112233445566, Service: 0x6d6f6269, Data: []byte("a")},
		},
		"Response": {
			"1234 1389 07 00 0000 03 00 112233445566 0000 aabbccddeeff 6d6f6269",
			Packet{Type: TypeResponse, Extended: true, Seq: 0x112233445566, Ack: 0xaabbccddeeff, Service: 0x6d6f6269},
		},
		"Data short": {
			"1234 1389 03 51 0000 04 445566 61",
			Packet{Type: TypeData, CCVal: 5, CsCov: 1, Seq: 0x445566, Data: []byte("a")},
		},
		"Data long": {
			"1234 1389 04 00 0000 05 00 112233445566",
			Packet{Type: TypeData, Extended: true, Seq: 0x112233445566},
		},
		"Ack short": {
			"1234 1389 05 00 0000 06 445566 00 ddeeff 02000000",
			Packet{Type: TypeAck, Seq: 0x445566, Ack: 0xddeeff, Options: []byte{2, 0, 0, 0}},
		},
		"DataAck long": {
			"1234 1389 06 00 0000 09 00 112233445566 0000 aabbccddeeff 62",
			Packet{Type: TypeDataAck, Extended: true, Seq: 0x112233445566, Ack: 0xaabbccddeeff, Data: []byte("b")},
		},
		"Reset": {
			"1234 1389 07 00 0000 0f 00 112233445566 0000 aabbccddeeff 05 20 0102",
			Packet{Type: TypeReset, Extended: true, Seq: 0x112233445566, Ack: 0xaabbccddeeff, Code: ResetOptionError, CodeData: [3]byte{32, 1, 2}},
		},
		"Sync": {
			"1234 1389 06 00 0000 11 00 112233445566 0000 aabbccddeeff",
			Packet{Type: TypeSync, Extended: true, Seq: 0x112233445566, Ack: 0xaabbccddeeff},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.p.SrcPort, c.p.DstPort = 0x1234, 0x1389
			want := unhex(t, c.hex)
			if got := c.p.Append(nil); !bytes.Equal(got, want) {
				t.Errorf("appended %x, want %x", got, want)
			}
			var got Packet
			if err := got.Parse(want); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.p, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("parsed (-want +got):\n%s", d)
			}
		})
	}
}

// RFC 4340, section 8.5, step 1: "Packets that fail these checks are ignored".
func TestMalformed(t *testing.T) {
	for name, c := range map[string]struct {
		hex  string
		want error
	}{
		"empty":                   {"", ErrShort},
		"11 bytes":                {"1234 1389 03 00 0000 04 4455", ErrShort},
		"reserved type 10":        {"1234 1389 04 00 0000 15 00 112233445566", ErrType},
		"experimental type 14":    {"1234 1389 04 00 0000 1d 00 112233445566", ErrType},
		"offset below header":     {"1234 1389 03 00 0000 05 00 112233445566", ErrOffset},
		"offset beyond packet":    {"1234 1389 05 00 0000 05 00 112233445566", ErrOffset},
		"no room for service":     {"1234 1389 04 00 0000 01 00 112233445566", ErrOffset},
		"short Request":           {"1234 1389 04 00 0000 00 445566 6d6f6269", ErrShortSeq},
		"short Sync":              {"1234 1389 04 00 0000 10 445566 00 ddeeff", ErrShortSeq},
		"coverage beyond data":    {"1234 1389 03 03 0000 04 445566 616263", ErrCoverage},
		"coverage of all, padded": {"1234 1389 03 02 0000 04 445566 61626364", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var p Packet
			if err := p.Parse(unhex(t, c.hex)); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// Section 5.1: receivers MUST ignore the value of reserved fields.
func TestReservedFieldsAreIgnored(t *testing.T) {
	var p Packet
	if err := p.Parse(unhex(t, "1234 1389 06 00 0000 f1 ff 112233445566 ffff aabbccddeeff")); err != nil {
		t.Fatal(err)
	}
	if p.Type != TypeSync || p.Seq != 0x112233445566 || p.Ack != 0xaabbccddeeff {
		t.Errorf("got %+v", p)
	}
}

// drawPacket makes any packet that can be sent.
func drawPacket(t *rapid.T) Packet {
	typ := Type(rapid.IntRange(0, int(numTypes)-1).Draw(t, "type"))
	p := Packet{
		SrcPort: rapid.Uint16().Draw(t, "src"), DstPort: rapid.Uint16().Draw(t, "dst"),
		Type: typ, CCVal: uint8(rapid.IntRange(0, 15).Draw(t, "ccval")),
		Extended: !typ.mayBeShort() || rapid.Bool().Draw(t, "long"),
		Data:     rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(t, "data"),
	}
	p.CsCov = uint8(rapid.IntRange(0, min(15, len(p.Data)/4+1)).Draw(t, "cscov"))
	mask := Seq(seqMask)
	if !p.Extended {
		mask = 0xffffff
	}
	p.Seq = Seq(rapid.Uint64().Draw(t, "seq")) & mask
	if typ.HasAck() {
		p.Ack = Seq(rapid.Uint64().Draw(t, "ack")) & mask
	}
	switch typ {
	case TypeRequest, TypeResponse:
		p.Service = ServiceCode(rapid.Uint32().Draw(t, "service"))
	case TypeReset:
		p.Code = ResetCode(rapid.Byte().Draw(t, "code"))
		p.CodeData = [3]byte(rapid.SliceOfN(rapid.Byte(), 3, 3).Draw(t, "code data"))
	default:
	}
	p.Options = make([]byte, 4*rapid.IntRange(0, 20).Draw(t, "option words"))
	for i := range p.Options {
		p.Options[i] = rapid.Byte().Draw(t, "option byte")
	}
	return p
}

func TestPacketRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPacket(t)
		var got Packet
		if err := got.Parse(p.Append(nil)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	})
}

// dumbChecksum adds the words one by one, as RFC 1071 says it.
func dumbChecksum(b []byte, src, dst netip.Addr) uint16 {
	covers := len(b)
	if cov := int(b[5] & 15); cov > 0 {
		covers = int(b[4])*4 + (cov-1)*4
	}
	all := append(src.AsSlice(), dst.AsSlice()...)
	all = binary.BigEndian.AppendUint32(all, uint32(len(b)))
	all = binary.BigEndian.AppendUint32(all, 33)
	all = append(all, b[:covers]...)
	if len(all)%2 != 0 {
		all = append(all, 0)
	}
	var s uint32
	for i := 0; i < len(all); i += 2 {
		s += uint32(all[i])<<8 | uint32(all[i+1])
		s = s&0xffff + s>>16
	}
	return ^uint16(s)
}

func TestChecksum(t *testing.T) {
	pairs := [][2]netip.Addr{
		{netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.1.0.2")},
		{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("fe80::ffff:2")},
	}
	rapid.Check(t, func(t *rapid.T) {
		p := drawPacket(t)
		pair := pairs[rapid.IntRange(0, 1).Draw(t, "family")]
		b := p.Append(nil)
		want := dumbChecksum(b, pair[0], pair[1])
		SetChecksum(b, pair[0], pair[1])
		if got := binary.BigEndian.Uint16(b[6:]); got != want {
			t.Fatalf("checksum %04x, want %04x", got, want)
		}
		if err := VerifyChecksum(b, pair[0], pair[1]); err != nil {
			t.Fatal(err)
		}
		i := rapid.IntRange(0, len(b)-1).Draw(t, "broken byte")
		if i == 4 || i == 5 {
			return // offset and coverage: they move what is covered
		}
		b[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		// Section 9.2: what is not covered may be broken.
		if got, want := VerifyChecksum(b, pair[0], pair[1]) != nil, i < covered(b); got != want {
			t.Fatalf("byte %d of %d broken, %d covered: refused %v", i, len(b), covered(b), got)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"123413890500000001001122334455666d6f626961", "12341389030000000444556601", "1234138907000000" + "0f00112233445566" + "0000aabbccddeeff" + "05200102",
		"1234138905000000064455660" + "0ddeeff02000000",
	} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Packet
		if p.Parse(b) != nil {
			return
		}
		var again Packet
		if err := again.Parse(p.Append(nil)); err != nil {
			t.Fatalf("%+v: own packet refused: %v", p, err)
		}
		if d := cmp.Diff(p, again, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
		_ = covered(b)
	})
}

// RFC 4340, section 3.1: numbers are compared in circular space.
func TestSeq(t *testing.T) {
	const top = seqMask
	for _, c := range []struct {
		a, b Seq
		want int64
	}{{5, 3, 2}, {3, 5, -2}, {0, top, 1}, {top, 0, -1}, {1 << 47, 0, -1 << 47}, {7, 7, 0}} {
		if got := c.a.Sub(c.b); got != c.want {
			t.Errorf("%d - %d = %d, want %d", c.a, c.b, got, c.want)
		}
	}
	if !Seq(2).In(top-1, 5) || Seq(6).In(top-1, 5) || Seq(top-2).In(top-1, 5) {
		t.Error("In is wrong over the wrap")
	}
	if later(top, 1) != 1 || later(1, top) != 1 {
		t.Error("later is wrong over the wrap")
	}
}

// extendByTheBook is the procedure of RFC 4340, section 7.6.
func extendByTheBook(s, ref uint64) uint64 {
	low, high := ref&0xffffff, ref>>24
	after := func(a, b uint64) bool { return (b-a)&0xffffff <= 1<<23 } // a (<) b
	switch {
	case after(low, s) && s < low:
		return (high+1)&0xffffff<<24 | s
	case after(s, low) && low < s && !after(low, s):
		return (high-1)&0xffffff<<24 | s
	default:
		return high<<24 | s
	}
}

func TestExtend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ref := rapid.Uint64Range(0, seqMask).Draw(t, "ref")
		low := rapid.Uint64Range(0, 1<<24-1).Draw(t, "low")
		if got, want := extend(Seq(low), Seq(ref)), extendByTheBook(low, ref); uint64(got) != want {
			t.Fatalf("extend(%x, %x) = %x, want %x", low, ref, got, want)
		}
	})
}

func TestServiceCodes(t *testing.T) {
	for s, want := range map[string]ServiceCode{ // RFC 4340, section 8.1.2
		"SC:fdpz": 1717858426, "SC=1717858426": 1717858426, "SC=x6664707A": 1717858426, "SC:ab": 0x61622020,
	} {
		if got, err := ParseServiceCode(s); err != nil || got != want {
			t.Errorf("%s: %d, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "fdpz", "SC:", "SC:abcde", "SC:a b", "SC=4294967295", "SC=x", "SC=-1", "SC=xffffffff"} {
		if got, err := ParseServiceCode(s); err == nil {
			t.Errorf("%q is read as %d", s, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := ServiceCode(rapid.Uint32Range(0, 1<<32-2).Draw(t, "code"))
		if got, err := ParseServiceCode(s.String()); err != nil || got != s {
			t.Fatalf("%d shown as %q is read as %d, %v", s, s, got, err)
		}
	})
}

func readAll(b []byte) (all []Option, r OptionReader) {
	r = ReadOptions(b)
	for o := (Option{}); r.Next(&o); {
		all = append(all, o)
	}
	return all, r
}

// RFC 4340, sections 5.8 to 5.8.2.
func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		in        []byte
		want      []Option
		dangling  bool
		badLength bool
		lost      bool
	}{
		"none":                  {in: nil},
		"padding between":       {in: []byte{0, 2, 0, 37, 3, 5, 0}, want: []Option{{Type: 2}, {Type: 37, Data: []byte{5}}}},
		"unknown single":        {in: []byte{31}, want: []Option{{Type: 31}}},
		"mandatory":             {in: []byte{1, 37, 3, 5, 2}, want: []Option{{Type: 37, Mandatory: true, Data: []byte{5}}, {Type: 2}}},
		"mandatory single":      {in: []byte{1, 2}, want: []Option{{Type: 2, Mandatory: true}}},
		"mandatory padding":     {in: []byte{1, 0, 2}, want: []Option{{Type: 2}}},
		"mandatory at the end":  {in: []byte{2, 1}, want: []Option{{Type: 2}}, dangling: true},
		"mandatory mandatory":   {in: []byte{1, 1, 2}, dangling: true},
		"length 1":              {in: []byte{2, 37, 1, 2}, want: []Option{{Type: 2}}, badLength: true},
		"length 0":              {in: []byte{37, 0, 2}, badLength: true},
		"length beyond":         {in: []byte{37, 4, 2}, badLength: true},
		"no length":             {in: []byte{37}, badLength: true},
		"mandatory, bad length": {in: []byte{1, 37, 1, 2}, badLength: true, lost: true},
		"empty long":            {in: []byte{200, 2}, want: []Option{{Type: 200}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, r := readAll(c.in)
			if d := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
			if r.Dangling != c.dangling || r.BadLength != c.badLength || r.MandatoryLost != c.lost {
				t.Errorf("ended with %+v", r)
			}
		})
	}
}

func FuzzOptions(f *testing.F) {
	f.Add([]byte{1, 32, 4, 1, 3, 38, 4, 0, 192})
	f.Add([]byte{1, 1})
	f.Add([]byte{42, 10, 1, 2, 3, 4, 5, 6, 7, 8, 43, 4, 1, 2, 37, 8, 1, 2, 3, 4, 5, 6})
	f.Fuzz(func(t *testing.T, b []byte) {
		all, r := readAll(b)
		used := 0
		for _, o := range all {
			used += 1 + len(o.Data)
			switch o.Type {
			case optPadding, optMandatory:
				t.Fatalf("option %d shown", o.Type)
			case optElapsedTime:
				parseElapsed(o.Data)
			case optTimestampEcho:
				parseTimestampEcho(o.Data)
			case optNDPCount:
				parseNDPCount(o.Data)
			}
		}
		if used > len(b) {
			t.Fatalf("%d bytes of options in %d", used, len(b))
		}
		if r.Dangling && r.BadLength {
			t.Fatal("two ends")
		}
	})
}

// Sections 7.7, 13.2 and 13.3: the shortest form that holds the value.
func TestShortestForms(t *testing.T) {
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{appendNDPCount(nil, 0), ""},
		{appendNDPCount(nil, 1), "25 03 01"},
		{appendNDPCount(nil, 256), "25 04 0100"},
		{appendNDPCount(nil, 1<<40), "25 08 010000000000"},
		{appendElapsed(nil, 10*time.Microsecond), "2b 04 0001"},
		{appendElapsed(nil, 655350*time.Microsecond), "2b 04 ffff"},
		{appendElapsed(nil, 655360*time.Microsecond), "2b 06 00010000"},
		{appendElapsed(nil, 12*time.Hour), "2b 06 ffffffff"},
		{appendElapsed(nil, -1), "2b 04 0000"},
		{appendTimestampEcho(nil, 7, 0), "2a 06 00000007"},
		{appendTimestampEcho(nil, 7, time.Millisecond), "2a 08 00000007 0064"},
		{appendTimestampEcho(nil, 7, time.Second), "2a 0a 00000007 000186a0"},
	} {
		if want := unhex(t, c.want); !bytes.Equal(c.got, want) {
			t.Errorf("got %x, want %x", c.got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, seqMask).Draw(t, "n")
		if got, ok := parseNDPCount(appendNDPCount(nil, n)[2:]); !ok || got != n {
			t.Fatalf("%d read as %d", n, got)
		}
		d := time.Duration(rapid.Int64Range(0, int64(11*time.Hour)).Draw(t, "d")).Truncate(hundredths)
		if got, ok := parseElapsed(appendElapsed(nil, d)[2:]); !ok || got != d {
			t.Fatalf("%v read as %v", d, got)
		}
		if stamp, got, ok := parseTimestampEcho(appendTimestampEcho(nil, 9, d)[2:]); !ok || got != d || stamp != 9 {
			t.Fatalf("%v read as %v", d, got)
		}
	})
}
