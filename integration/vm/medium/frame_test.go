package medium

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
)

var (
	station = Addr{2, 0, 0, 0, 0, 0}
	ap      = Addr{2, 0, 0, 0, 1, 0}
	all     = Addr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
)

// Kinds of frame, by the first octet.
const (
	beacon  = 0x80
	data    = 0x08
	null    = 0x48
	qosData = 0x88
	qosNull = 0xc8
	auth    = 0xb0
)

// header is a frame of n bytes.
func header(kind byte, to, by Addr, n int) []byte {
	b := make([]byte, n)
	b[0] = kind
	copy(b[4:], to[:])
	copy(b[10:], by[:])
	return b
}

// driverMessage is what the driver sends about a frame.
func driverMessage(t testing.TB, radio []byte, frame, tries, rateFlags []byte, flags uint32) []byte {
	t.Helper()
	ae := netlink.NewAttributeEncoder()
	ae.Bytes(attrTransmitter, radio)
	ae.Bytes(attrFrame, frame)
	ae.Uint32(attrFlags, flags)
	ae.Bytes(attrTxInfo, tries)
	if rateFlags != nil {
		ae.Bytes(attrTxInfoFlags, rateFlags)
	}
	ae.Bytes(attrCookie, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	ae.Uint32(attrFrequency, 2412)
	b, err := ae.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecodeFrame(t *testing.T) {
	mcs7 := make([]byte, 12)
	binary.NativeEndian.PutUint16(mcs7[1:], rateIsMCS)
	f, err := decodeFrame(driverMessage(t, Radio(258).bytes(), header(qosData, ap, station, 100),
		[]byte{7, 2, 3, 4, 0xff, 0, 0, 0}, mcs7, 1))
	if err != nil {
		t.Fatal(err)
	}
	if f.From != 258 || f.To != ap || f.By != station || !f.Data || f.NoAck {
		t.Errorf("frame %+v", f)
	}
	want := []Try{{Rate: mcs[7], Count: 2, index: 7}, {Rate: legacy[3], Count: 4, index: 3}}
	if diff := cmp.Diff(want, f.Tries, cmp.AllowUnexported(Try{})); diff != "" {
		t.Error("(-want +got)", diff)
	}
}

// "Keep-alives without content (null frames) are no data."
func TestContent(t *testing.T) {
	for kind, want := range map[byte]bool{data: true, qosData: true, null: false, qosNull: false, beacon: false, auth: false} {
		if got := hasContent(header(kind, ap, station, 24)); got != want {
			t.Errorf("kind %#x has content: %v, want %v", kind, got, want)
		}
	}
}

func TestDecodeFrameRefuses(t *testing.T) {
	good := header(data, ap, station, 24)
	for name, b := range map[string][]byte{
		"no attributes":          nil,
		"no attribute's end":     {9, 0, 1, 0},
		"interface, not radio":   driverMessage(t, station[:], good, nil, nil, 0),
		"a radio of four octets": driverMessage(t, []byte{radioPrefix, 0, 0, 1}, good, nil, nil, 0),
		"a frame too short":      driverMessage(t, Radio(1).bytes(), good[:shortest-1], nil, nil, 0),
	} {
		if f, err := decodeFrame(b); err == nil {
			t.Errorf("%s: frame %+v", name, f)
		}
	}
}

func TestDecodeAddress(t *testing.T) {
	encode := func(address, radio []byte) []byte {
		ae := netlink.NewAttributeEncoder()
		ae.Bytes(attrReceiver, address)
		ae.Bytes(attrTransmitter, radio)
		b, err := ae.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	address, radio, err := decodeAddress(encode(ap[:], Radio(1).bytes()))
	if err != nil || address != ap || radio != 1 {
		t.Errorf("address %x of radio %d, error %v", address, radio, err)
	}
	for _, b := range [][]byte{nil, encode(ap[:5], Radio(1).bytes()), encode(ap[:], ap[:])} {
		if _, _, err := decodeAddress(b); err == nil {
			t.Errorf("%x: no error", b)
		}
	}
}

// "A sender is told what became of its frame as a radio would: at which rate, after how many
// tries."
func TestTriesMade(t *testing.T) {
	for _, c := range []struct {
		attempts int
		want     []byte
	}{
		{0, []byte{0xff, 0, 0xff, 0, 0xff, 0, 0, 0}},
		{1, []byte{7, 1, 0xff, 0, 0xff, 0, 0, 0}},
		{3, []byte{7, 2, 3, 1, 0xff, 0, 0, 0}},
		{6, []byte{7, 2, 3, 4, 0xff, 0, 0, 0}},
	} {
		if diff := cmp.Diff(c.want, triesMade([]byte{7, 2, 3, 4, 0xff, 0, 0, 0}, c.attempts)); diff != "" {
			t.Errorf("%d attempts (-want +got) %s", c.attempts, diff)
		}
	}
}

func TestEncodeReception(t *testing.T) {
	f := &Frame{bytes: header(data, ap, station, 24), frequencyMHz: 2437}
	b, err := encodeReception(f, Reception{To: 3, SignalDBm: -71, rateIndex: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint16][]byte{
		attrReceiver:  {0x42, 0, 0, 0, 3, 0},
		attrFrame:     f.bytes,
		attrRxRate:    {2, 0, 0, 0},
		attrSignal:    {0xb9, 0xff, 0xff, 0xff},
		attrFrequency: {0x85, 0x09, 0, 0},
	}
	if diff := cmp.Diff(want, attributes(t, b)); diff != "" {
		t.Error("(-want +got)", diff)
	}
}

func TestEncodeStatus(t *testing.T) {
	f := &Frame{From: 1, flags: 1, cookie: []byte{9}, tries: []byte{2, 3}}
	b, err := encodeStatus(f, Status{Acked: true, Attempts: 2, SignalDBm: -50})
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint16][]byte{
		attrTransmitter: {0x42, 0, 0, 0, 1, 0},
		attrFlags:       {5, 0, 0, 0},
		attrCookie:      {9},
		attrSignal:      {0xce, 0xff, 0xff, 0xff},
		attrTxInfo:      {2, 2},
	}
	if diff := cmp.Diff(want, attributes(t, b)); diff != "" {
		t.Error("(-want +got)", diff)
	}
}

func attributes(t *testing.T, b []byte) map[uint16][]byte {
	t.Helper()
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint16][]byte{}
	for ad.Next() {
		got[ad.Type()] = ad.Bytes()
	}
	return got
}

// No message of the driver makes the medium panic, and what it gives on can be encoded.
func FuzzDecodeFrame(f *testing.F) {
	f.Add(driverMessage(f, Radio(1).bytes(), header(data, ap, station, 40), []byte{1, 2, 0, 9}, nil, 3), uint8(3))
	f.Add(driverMessage(f, Radio(2).bytes(), header(beacon, all, ap, 60), nil, []byte{1, 8}, 0), uint8(0))
	f.Add([]byte{5, 0, 1, 0, 0, 0, 0, 0}, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, attempts uint8) {
		_, _, _ = decodeAddress(b)
		frame, err := decodeFrame(b)
		if err != nil {
			return
		}
		air := NewAir(1)
		air.SetLoss(SNR{})
		air.Set(1, frame.From, 9, Steady(-80))
		heard := air.Transmit(2, frame)
		for _, r := range heard {
			if _, err := encodeReception(frame, r); err != nil {
				t.Error(err)
			}
		}
		s := air.Done(2, frame, heard)
		s.Attempts = int(attempts)
		if _, err := encodeStatus(frame, s); err != nil {
			t.Error(err)
		}
	})
}
