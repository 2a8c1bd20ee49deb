package dccp

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

func all(where, index) bool { return true }

// RFC 4340, section 6.5: the encodings of the text.
func TestFeatureEncodings(t *testing.T) {
	var fs features
	fs.init(false, 0)
	fs.at[local][fCCID].prefer(2, 3)
	fs.at[remote][fCCID].prefer(3, 2)
	fs.begin(local, fCCID, 0, false)
	fs.begin(local, fSeqWindow, 1024, false)
	want := []byte{32, 5, 1, 2, 3, 32, 9, 3, 0, 0, 0, 0, 4, 0}
	if got := fs.append(nil, 1, true); !bytes.Equal(got, want) {
		t.Errorf("Change L: %v, want %v", got, want)
	}
	fs.begin(remote, fCCID, 0, true)
	if got, want := fs.append(nil, 2, true), []byte{1, 34, 5, 1, 3, 2}; !bytes.Equal(got, want) {
		t.Errorf("Mandatory Change R: %v, want %v", got, want)
	}
	take := func(b ...byte) outcome {
		r := ReadOptions(b)
		var o Option
		r.Next(&o)
		out, _, _, _ := fs.take(&o, true, all)
		return out
	}
	for _, c := range []struct{ in, want []byte }{
		{[]byte{34, 5, 1, 3, 2}, []byte{33, 6, 1, 3, 2, 3}},                      // server's list is 3 2
		{[]byte{32, 9, 3, 0, 0, 0, 0, 4, 0}, []byte{35, 9, 3, 0, 0, 0, 0, 4, 0}}, // Confirm R(Sequence Window, 1024)
		{[]byte{34, 4, 126, 1}, []byte{33, 3, 126}},                              // empty Confirm L(126)
		{[]byte{32, 4, 126, 1}, []byte{35, 3, 126}},                              // empty Confirm R(126)
		{[]byte{32, 9, 3, 0, 0, 0, 0, 0, 31}, []byte{35, 3, 3}},                  // below Wmin: section 7.5.2
		{[]byte{32, 9, 3, 0, 0, 0, 0, 0, 0}, []byte{35, 3, 3}},                   // erratum 1049
		{[]byte{32, 9, 3, 0x40, 0, 0, 0, 0, 0}, []byte{35, 3, 3}},                // above Wmax
		{[]byte{32, 8, 3, 0, 0, 0, 4, 0}, []byte{35, 3, 3}},                      // wrong length: section 6.6.8
		{[]byte{34, 9, 3, 0, 0, 0, 0, 4, 0}, []byte{33, 3, 3}},                   // Change R of a non-negotiable one: 6.3.2
		{[]byte{32, 4, 1, 9}, []byte{35, 6, 1, 2, 3, 2}},                         // nothing shared: the value stays
		{[]byte{32, 3, 1}, []byte{35, 3, 1}},                                     // no value
		{[]byte{32, 5, 5, 0, 3, 32, 5, 5, 0, 3}, []byte{35, 5, 5, 0, 3}},         // Ack Ratio
	} {
		take(c.in...)
		if got := fs.append(nil, 3, true); !bytes.Equal(got, c.want) {
			t.Errorf("%v is answered by %v, want %v", c.in, got, c.want)
		}
	}
	if len(fs.append(nil, 4, true)) != 0 {
		t.Error("answered twice")
	}
}

// Section 6.6.8: an invalid Confirm resets the connection; 6.6.7: an empty one ends the
// negotiation, and is an error for a feature that everybody has to know.
func TestConfirms(t *testing.T) {
	for name, c := range map[string]struct {
		in    []byte
		begin index
		want  outcome
		value uint64
		state negotiation
	}{
		"right":               {[]byte{35, 6, 1, 3, 3, 2}, fCCID, done, 3, stable},
		"wrong value":         {[]byte{35, 6, 1, 2, 3, 2}, fCCID, invalid, 2, changing},
		"nothing shared":      {[]byte{35, 5, 1, 2, 9}, fCCID, done, 2, stable},
		"without a list":      {[]byte{35, 4, 1, 3}, fCCID, done, 3, stable},
		"value of nobody":     {[]byte{35, 4, 1, 9}, fCCID, invalid, 2, changing},
		"empty, required":     {[]byte{35, 3, 1}, fCCID, invalid, 2, changing},
		"empty, optional":     {[]byte{35, 3, 120}, fFreeze, done, 0, stable},
		"window":              {[]byte{35, 9, 3, 0, 0, 0, 0, 2, 0}, fSeqWindow, done, 512, stable},
		"another window":      {[]byte{35, 9, 3, 0, 0, 0, 0, 3, 0}, fSeqWindow, invalid, 100, changing},
		"of nothing asked":    {[]byte{35, 4, 7, 1}, fCCID, done, 2, changing},
		"of an unknown":       {[]byte{35, 4, 99, 1}, fCCID, done, 2, changing},
		"of the other end":    {[]byte{33, 6, 1, 3, 3, 2}, fCCID, done, 2, changing},
		"simultaneous Change": {[]byte{34, 5, 1, 2, 3}, fCCID, done, 2, stable},
	} {
		t.Run(name, func(t *testing.T) {
			var fs features
			fs.init(false, 0)
			fs.at[local][fCCID].prefer(3, 2)
			fs.at[local][fFreeze].prefer(1, 0)
			fs.begin(local, c.begin, 512, false)
			fs.append(nil, 1, true)
			r := ReadOptions(c.in)
			var o Option
			r.Next(&o)
			if out, _, _, _ := fs.take(&o, true, all); out != c.want {
				t.Errorf("outcome %v, want %v", out, c.want)
			}
			if f := fs.at[local][c.begin]; f.value != c.value || f.state != c.state {
				t.Errorf("value %d, state %d", f.value, f.state)
			}
		})
	}
}

// Section 6.6.4: options of features are processed in the order of their packets; a
// Confirm counts where the packet acknowledges our newest Change.
func TestReorderedFeatures(t *testing.T) {
	p := newPair(t, Config{}, Config{}).open()
	p.run(time.Second)
	v := p.server.conn
	change := func(seq Seq, window byte) {
		a := Packet{
			SrcPort: 1000, DstPort: 2000, Type: TypeAck, Extended: true, Seq: seq, Ack: v.gss,
			Options: []byte{32, 9, 3, 0, 0, 0, 0, window, 0, 0, 0, 0},
		}
		v.Receive(p.now, a.Append(nil))
	}
	first := v.gsr
	change(first.Add(5), 9)
	change(first.Add(3), 7)
	if got := v.feat.value(remote, fSeqWindow); got != 9*256 {
		t.Errorf("window %d", got)
	}
	v.feat.begin(local, fSeqWindow, 4096, false)
	v.Poll(p.now, nil, nil, false)
	fgss := v.feat.fgss
	confirm := func(seq, ack Seq) {
		a := Packet{
			SrcPort: 1000, DstPort: 2000, Type: TypeAck, Extended: true, Seq: seq, Ack: ack,
			Options: []byte{35, 9, 3, 0, 0, 0, 0, 16, 0, 0, 0, 0},
		}
		v.Receive(p.now, a.Append(nil))
	}
	confirm(first.Add(6), fgss.Add(-1))
	if v.feat.at[local][fSeqWindow].state != changing {
		t.Error("a Confirm of an older Change counts")
	}
	confirm(first.Add(7), fgss)
	if v.feat.value(local, fSeqWindow) != 4096 {
		t.Error("the Confirm does not count")
	}
}

// Sections 5.8.2 and 6.6.9: what a Mandatory option does.
func TestMandatory(t *testing.T) {
	for name, c := range map[string]struct {
		typ     Type
		options []byte
		want    ResetCode
		data    [3]byte
	}{
		"known":                {typ: TypeAck, options: []byte{1, optSlowReceiver}},
		"unknown":              {typ: TypeAck, options: []byte{1, 100, 4, 7, 8}, want: ResetMandatoryError, data: [3]byte{100, 7, 8}},
		"unknown without data": {typ: TypeAck, options: []byte{1, 100, 2}, want: ResetMandatoryError, data: [3]byte{100}},
		"unknown on Data":      {typ: TypeData, options: []byte{1, 100, 2}},
		"unknown feature":      {typ: TypeAck, options: []byte{1, 32, 4, 99, 1}, want: ResetMandatoryError, data: [3]byte{32, 99, 1}},
		"nothing shared":       {typ: TypeAck, options: []byte{1, 32, 4, 1, 200}, want: ResetMandatoryError, data: [3]byte{32, 1, 200}},
		"invalid value":        {typ: TypeAck, options: []byte{1, 32, 4, 3, 1}, want: ResetMandatoryError, data: [3]byte{32, 3, 1}},
		"optional unknown":     {typ: TypeAck, options: []byte{100, 4, 7, 8}},
		"last":                 {typ: TypeAck, options: []byte{2, 2, 2, 1}, want: ResetOptionError, data: [3]byte{1}},
		"twice":                {typ: TypeAck, options: []byte{1, 1, 2, 2}, want: ResetOptionError, data: [3]byte{1}},
		"bad length":           {typ: TypeAck, options: []byte{1, 100, 1, 0}, want: ResetMandatoryError, data: [3]byte{100}},
		"bad length, optional": {typ: TypeAck, options: []byte{100, 1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, Config{}, Config{}).open()
			v := p.server.conn
			a := Packet{SrcPort: 1000, DstPort: 2000, Type: c.typ, Extended: true, Seq: v.gsr.Add(1), Ack: v.gss, Options: c.options}
			for len(a.Options)%4 != 0 {
				a.Options = append(a.Options, 0)
			}
			v.Receive(p.now, a.Append(nil))
			if (v.State() == StateOpen) != (c.want == 0) {
				t.Fatalf("state %v", v.State())
			}
			if c.want == 0 {
				return
			}
			b, _ := v.Poll(p.now, nil, nil, false)
			var r Packet
			if err := r.Parse(b); err != nil || r.Code != c.want || r.CodeData != c.data {
				t.Errorf("reset %v %v, want %v %v", r.Code, r.CodeData, c.want, c.data)
			}
		})
	}
}

// The features that are about data: coverage, CRC, short numbers, NDP counts.
func TestDataFeatures(t *testing.T) {
	corrupt := func(p *pair) { // in the last byte of what the client sends with data
		p.fate = func(from *end, b []byte) time.Duration {
			if from == p.client && len(b) > 60 {
				b[len(b)-1] ^= 1
			}
			return 0
		}
	}
	long := bytes.Repeat([]byte{7}, 100)
	t.Run("coverage", func(t *testing.T) {
		p := newPair(t, Config{Coverage: 3}, Config{MinCoverage: 2}).open()
		p.client.queue = [][]byte{long}
		p.fate = func(from *end, b []byte) time.Duration {
			var h Packet
			if _ = h.Parse(b); from == p.client && len(h.Data) > 0 && h.CsCov != 3 {
				t.Errorf("coverage %d", h.CsCov)
			}
			return 0
		}
		p.run(time.Second)
		if len(p.server.got) != 1 {
			t.Errorf("got %d", len(p.server.got))
		}
	})
	t.Run("too little coverage", func(t *testing.T) {
		p := newPair(t, Config{}, Config{}).open()
		a := Packet{SrcPort: 1000, DstPort: 2000, Type: TypeData, Extended: true, CsCov: 1, Seq: p.server.conn.gsr.Add(1), Data: long}
		p.give(p.server, a.Append(nil))
		p.run(time.Second)
		if len(p.server.got) != 0 || p.server.conn.Stats().DataRefused != 1 {
			t.Errorf("got %d, stats %+v", len(p.server.got), p.server.conn.Stats())
		}
	})
	t.Run("CRC", func(t *testing.T) {
		p := newPair(t, Config{DataChecksum: true}, Config{}).open()
		p.client.queue = [][]byte{long}
		p.run(time.Second)
		corrupt(p)
		p.client.queue = [][]byte{long}
		p.run(time.Second)
		if len(p.server.got) != 1 || p.server.conn.Stats().DataRefused != 1 {
			t.Errorf("got %d, stats %+v", len(p.server.got), p.server.conn.Stats())
		}
		if v := p.client.conn.feat.value(remote, fCheckData); v != 1 {
			t.Error("Check Data Checksum is not agreed")
		}
	})
	t.Run("short numbers", func(t *testing.T) {
		p := newPair(t, Config{ShortSeq: true}, Config{}).open()
		if v := p.server.conn.feat.value(remote, fShortSeqnos); v != 0 {
			t.Errorf("the server prefers long numbers, and its list decides; yet %d", v)
		}
		p = newPair(t, Config{ShortSeq: true}, Config{ShortSeq: true}).open()
		for i := range 50 {
			p.client.queue = append(p.client.queue, fmt.Append(nil, i))
		}
		p.run(2 * time.Second)
		if len(p.server.got) != 50 {
			t.Errorf("got %d", len(p.server.got))
		}
	})
}

// Section 7.7: the example of the text, by the packets before each.
func TestNDPCount(t *testing.T) {
	p := newPair(t, Config{CCIDs: []uint8{3}}, Config{}).open()
	c := p.client.conn
	count := func(typ Type) (n uint64) {
		var h Packet
		if err := h.Parse(c.build(p.now, nil, typ, c.gsr, nil)); err != nil {
			t.Fatal(err)
		}
		r := ReadOptions(h.Options)
		for o := (Option{}); r.Next(&o); {
			if o.Type == optNDPCount {
				n, _ = parseNDPCount(o.Data)
			}
		}
		return n
	}
	c.ndp = 0
	for i, typ := range []Type{TypeAck, TypeAck, TypeData, TypeAck, TypeData, TypeData, TypeAck, TypeData, TypeData} {
		if got, want := count(typ), []uint64{0, 1, 2, 0, 1, 0, 0, 1, 0}[i]; got != want {
			t.Errorf("packet %d: count %d, want %d", i, got, want)
		}
	}
}
