package medium

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
)

// The driver's messages (drivers/net/wireless/mac80211_hwsim.h).
const (
	cmdRegister   = 1
	cmdFrame      = 2
	cmdTxInfo     = 3
	cmdAddAddress = 7
	cmdDelAddress = 8

	attrReceiver    = 1
	attrTransmitter = 2
	attrFrame       = 3
	attrFlags       = 4
	attrRxRate      = 5
	attrSignal      = 6
	attrTxInfo      = 7
	attrCookie      = 8
	attrFrequency   = 19
	attrTxInfoFlags = 21

	flagNoAck = 1 << 1
	flagAcked = 1 << 2
)

// Addr is the address of an interface, as frames carry it.
type Addr [6]byte

func (a Addr) group() bool { return a[0]&1 == 1 }

// A Try is a rate at which a sender tries, and how often before it goes on to the next.
type Try struct {
	Rate  Rate
	Count int
	index int8 // the driver's word for the rate
}

// A Frame is what a radio sends.
type Frame struct {
	From  Radio
	To    Addr // a station, or a group
	By    Addr // the sending interface
	Data  bool // it has content for the network above
	NoAck bool // the sender waits for no acknowledgement
	Tries []Try

	bytes        []byte // from the 802.11 header on
	flags        uint32
	frequencyMHz uint32
	cookie       []byte
	tries        []byte // as the driver sent them
}

// shortest is a frame that has both addresses.
const shortest = 16

// decodeFrame reads the driver's message about a frame.
func decodeFrame(b []byte) (*Frame, error) {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return nil, fmt.Errorf("medium: a frame's attributes: %w", err)
	}
	var f Frame
	var radio, rateFlags []byte
	for ad.Next() {
		switch ad.Type() {
		case attrTransmitter:
			radio = ad.Bytes()
		case attrFrame:
			f.bytes = ad.Bytes()
		case attrFlags:
			f.flags = ad.Uint32()
		case attrTxInfo:
			f.tries = ad.Bytes()
		case attrTxInfoFlags:
			rateFlags = ad.Bytes()
		case attrCookie:
			f.cookie = ad.Bytes()
		case attrFrequency:
			f.frequencyMHz = ad.Uint32()
		}
	}
	if err := ad.Err(); err != nil {
		return nil, fmt.Errorf("medium: a frame's attributes: %w", err)
	}
	if f.From, err = radioOf(radio); err != nil {
		return nil, err
	}
	if len(f.bytes) < shortest {
		return nil, fmt.Errorf("medium: a frame of %d bytes", len(f.bytes))
	}
	f.To, f.By = Addr(f.bytes[4:10]), Addr(f.bytes[10:16])
	f.NoAck = f.flags&flagNoAck != 0
	f.Data = hasContent(f.bytes)
	f.Tries = decodeTries(f.tries, rateFlags, f.frequencyMHz)
	return &f, nil
}

// hasContent reports whether a frame is of type data and of no subtype without content
// (IEEE 802.11-2020, table 9-1: bit 6 of the first octet).
func hasContent(frame []byte) bool {
	const typeMask, data, null = 0x0c, 0x08, 0x40
	return frame[0]&typeMask == data && frame[0]&null == 0
}

// decodeTries reads pairs of {index of the rate, count}, and the flags that say what the index
// is one of: triples of {index, flags}. An index below 0 ends the list.
func decodeTries(pairs, flags []byte, frequencyMHz uint32) []Try {
	var tries []Try
	for i := 0; i+2 <= len(pairs) && int8(pairs[i]) >= 0; i += 2 {
		t := Try{index: int8(pairs[i]), Count: int(pairs[i+1])}
		var rateFlags uint16
		if at := i / 2 * 3; at+3 <= len(flags) {
			rateFlags = binary.NativeEndian.Uint16(flags[at+1:])
		}
		t.Rate = rateOf(int(t.index), rateFlags, frequencyMHz)
		tries = append(tries, t)
	}
	return tries
}

// The driver names a radio by an address of its own, not by an interface's.
const radioPrefix = 0x42

func radioOf(b []byte) (Radio, error) {
	if len(b) != 6 || b[0] != radioPrefix {
		return 0, fmt.Errorf("medium: no radio has the address %x", b)
	}
	return Radio(binary.BigEndian.Uint16(b[3:])), nil
}

func (r Radio) bytes() []byte { return []byte{radioPrefix, 0, 0, byte(r >> 8), byte(r), 0} }

// decodeAddress reads the driver's message that an interface has got or lost an address.
func decodeAddress(b []byte) (Addr, Radio, error) {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return Addr{}, 0, fmt.Errorf("medium: an address's attributes: %w", err)
	}
	var address, radio []byte
	for ad.Next() {
		switch ad.Type() {
		case attrReceiver:
			address = ad.Bytes()
		case attrTransmitter:
			radio = ad.Bytes()
		}
	}
	if len(address) != 6 {
		err = errors.New("medium: no interface's address")
	}
	r, radioErr := radioOf(radio)
	if err := errors.Join(ad.Err(), err, radioErr); err != nil {
		return Addr{}, 0, err
	}
	return Addr(address), r, nil
}

// encodeReception is the message by which a radio gets the frame.
func encodeReception(f *Frame, r Reception) ([]byte, error) {
	ae := netlink.NewAttributeEncoder()
	ae.Bytes(attrReceiver, r.To.bytes())
	ae.Bytes(attrFrame, f.bytes)
	ae.Uint32(attrRxRate, uint32(max(0, r.rateIndex)))
	ae.Int32(attrSignal, int32(r.SignalDBm))
	if f.frequencyMHz != 0 {
		// Else the driver takes any channel for the right one.
		ae.Uint32(attrFrequency, f.frequencyMHz)
	}
	return ae.Encode()
}

// encodeStatus is the message that tells the sender what became of its frame.
func encodeStatus(f *Frame, s Status) ([]byte, error) {
	flags := f.flags
	if s.Acked {
		flags |= flagAcked
	}
	ae := netlink.NewAttributeEncoder()
	ae.Bytes(attrTransmitter, f.From.bytes())
	ae.Uint32(attrFlags, flags)
	ae.Bytes(attrCookie, f.cookie)
	ae.Int32(attrSignal, int32(s.SignalDBm))
	ae.Bytes(attrTxInfo, triesMade(f.tries, s.Attempts))
	return ae.Encode()
}

// triesMade are the sender's tries, as far as attempts went.
func triesMade(tries []byte, attempts int) []byte {
	made := append([]byte(nil), tries...)
	for i := 0; i+2 <= len(made) && int8(made[i]) >= 0; i += 2 {
		count := min(int(made[i+1]), attempts)
		attempts -= count
		if made[i+1] = byte(count); count == 0 {
			made[i] = 0xff // -1: this rate was not used
		}
	}
	return made
}
