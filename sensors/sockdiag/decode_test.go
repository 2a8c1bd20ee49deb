package sockdiag

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// message builds what the kernel sends of a socket, with a tcp_info of so many octets.
func message(local, remote string, size int, set func(*unix.TCPInfo, []byte)) []byte {
	l, r := netip.MustParseAddrPort(local), netip.MustParseAddrPort(remote)
	b := make([]byte, msgSize)
	b[msgFamily] = unix.AF_INET
	if l.Addr().Is6() {
		b[msgFamily] = unix.AF_INET6
	}
	binary.BigEndian.PutUint16(b[msgPorts:], l.Port())
	binary.BigEndian.PutUint16(b[msgPorts+2:], r.Port())
	copy(b[msgSource:], l.Addr().AsSlice())
	copy(b[msgDest:], r.Addr().AsSlice())
	native.PutUint32(b[msgDevice:], 3)
	native.PutUint64(b[msgCookie:], 77)
	b = slices.Concat(b, []byte{5, 0, 9, 0, 1, 0, 0, 0}) // an attribute of another kind, with its padding
	var c unix.TCPInfo
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&c)), unsafe.Sizeof(c))
	if set != nil {
		set(&c, raw)
	}
	if size < 0 {
		return b
	}
	header := native.AppendUint16(native.AppendUint16(nil, uint16(4+size)), attrInfo)
	return slices.Concat(b, header, raw[:size])
}

const whole = int(unsafe.Sizeof(unix.TCPInfo{}))

func busy(c *unix.TCPInfo, raw []byte) {
	*c = unix.TCPInfo{
		Snd_mss: 1448, Unacked: 20, Pmtu: 1500, Rtt: 48_000, Rttvar: 6_000, Snd_cwnd: 60, Rcv_rtt: 51_000, Total_retrans: 3,
		Bytes_acked: 1_206_542, Bytes_received: 5120, Min_rtt: 41_000, Data_segs_out: 841, Delivered: 836, Delivery_rate: 1_175_000,
		Busy_time: 1_200_000, Rwnd_limited: 30_000, Sndbuf_limited: 400,
	}
	raw[flagsAt] = appLimited
}

func want(change func(*mihf.FlowReading)) mihf.FlowReading {
	r := mihf.FlowReading{
		Endpoints: mihf.Endpoints{Protocol: 6, Local: netip.MustParseAddrPort("192.0.2.57:40112"), Remote: netip.MustParseAddrPort("198.51.100.7:443")},
	}
	if change != nil {
		change(&r)
	}
	return r
}

func all(r *mihf.FlowReading) {
	*r = mihf.FlowReading{
		Endpoints: r.Endpoints, RTT: mihf.Some(48 * time.Millisecond), RTTVar: mihf.Some(6 * time.Millisecond), MinRTT: mihf.Some(41 * time.Millisecond),
		ReceiveRTT: mihf.Some(51 * time.Millisecond), CwndBytes: mihf.Some[uint64](86880), FlightBytes: mihf.Some[uint64](28960),
		DeliveryRateBPS: mihf.Some(9.4e6), AppLimited: true, PathMTUBytes: mihf.Some[uint64](1500),
		AckedBytes: mihf.Some[uint64](1_206_542), ReceivedBytes: mihf.Some[uint64](5120), SentSegments: mihf.Some[uint64](841),
		RetransSegments: mihf.Some[uint64](3), DeliveredSegments: mihf.Some[uint64](836), Busy: mihf.Some(1200 * time.Millisecond), WindowLimited: mihf.Some(30 * time.Millisecond),
		BufferLimited: mihf.Some(400 * time.Microsecond),
	}
}

func TestDecode(t *testing.T) {
	none := mihf.Opt[uint64]{}
	for _, tc := range []struct {
		name     string
		size     int
		set      func(*unix.TCPInfo, []byte)
		want     func(*mihf.FlowReading)
		rejected int
	}{
		{"all that is known", whole, busy, all, 0},
		{"no tcp_info", -1, nil, nil, 0},
		{"an empty one", 0, nil, nil, 0},
		{"Linux 3.0: 104 octets", 104, busy, func(r *mihf.FlowReading) {
			all(r)
			r.MinRTT, r.DeliveryRateBPS, r.AppLimited = unknown, mihf.Opt[float64]{}, false
			r.AckedBytes, r.ReceivedBytes, r.SentSegments, r.DeliveredSegments = none, none, none, none
			r.Busy, r.WindowLimited, r.BufferLimited = unknown, unknown, unknown
		}, 0},
		{"Linux 4.9: 168 octets", 168, busy, func(r *mihf.FlowReading) {
			all(r)
			r.DeliveredSegments = none
			r.Busy, r.WindowLimited, r.BufferLimited = unknown, unknown, unknown
		}, 0},
		{"cut in the middle of a field", 70, busy, func(r *mihf.FlowReading) {
			r.PathMTUBytes, r.FlightBytes = mihf.Some[uint64](1500), mihf.Some[uint64](28960)
		}, 0},
		{"nothing measured yet", whole, func(c *unix.TCPInfo, _ []byte) { c.Min_rtt, c.Rttvar = ^uint32(0), 250_000 }, func(r *mihf.FlowReading) {
			zero := mihf.Some[uint64](0)
			r.AckedBytes, r.ReceivedBytes, r.SentSegments, r.RetransSegments, r.DeliveredSegments = zero, zero, zero, zero, zero
			r.Busy, r.WindowLimited, r.BufferLimited = mihf.Some[time.Duration](0), mihf.Some[time.Duration](0), mihf.Some[time.Duration](0)
		}, 0},
		{"what cannot be", 192, func(c *unix.TCPInfo, _ []byte) {
			c.Rtt, c.Rcv_rtt, c.Delivery_rate, c.Busy_time, c.Rwnd_limited = 400_000_000, 1<<32-1, 1<<60, 1<<63, 1<<62
		}, func(r *mihf.FlowReading) {
			zero := mihf.Some[uint64](0)
			r.AckedBytes, r.ReceivedBytes, r.SentSegments, r.RetransSegments = zero, zero, zero, zero
			r.BufferLimited = mihf.Some[time.Duration](0)
		}, 5},
		{"not app limited", whole, func(c *unix.TCPInfo, raw []byte) { busy(c, raw); raw[flagsAt] = ^appLimited }, func(r *mihf.FlowReading) {
			all(r)
			r.AppLimited = false
		}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, rejected, err := decode(message("192.0.2.57:40112", "198.51.100.7:443", tc.size, tc.set))
			if err != nil || rejected != tc.rejected || s.cookie != 77 || s.device != 3 {
				t.Errorf("cookie %d, device %d, %d rejected, %v", s.cookie, s.device, rejected, err)
			}
			if diff := cmp.Diff(want(tc.want), s.FlowReading, cmp.Comparer(func(a, b mihf.FlowReading) bool { return a == b })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A socket that speaks IPv4 from an IPv6 address is an IPv4 flow.
func TestDecodeAddresses(t *testing.T) {
	for in, out := range map[string]string{"[2001:db8::7]:1": "[2001:db8::7]:1", "[::ffff:192.0.2.7]:65535": "192.0.2.7:65535", "0.0.0.0:0": "0.0.0.0:0"} {
		s, _, err := decode(message(in, in, -1, nil))
		if err != nil || s.Local.String() != out || s.Remote.String() != out {
			t.Errorf("%s: %v to %v, %v", in, s.Local, s.Remote, err)
		}
	}
}

func TestDecodeMalformed(t *testing.T) {
	good := message("192.0.2.57:40112", "198.51.100.7:443", 104, busy)
	family := append([]byte(nil), good...)
	family[msgFamily] = unix.AF_UNIX
	for name, tc := range map[string]struct {
		b    []byte
		want error
	}{
		"empty":               {nil, errShort},
		"one octet short":     {good[:msgSize-1], errShort},
		"another family":      {family, errFamily},
		"attribute too long":  {good[:len(good)-1], errAttribute},
		"attribute too short": {append(good[:msgSize:msgSize], 3, 0, 2, 0), errAttribute},
	} {
		if _, _, err := decode(tc.b); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(message("192.0.2.57:40112", "198.51.100.7:443", whole, busy))
	f.Add(message("[2001:db8::7]:40112", "[2001:db8::8]:443", 104, busy))
	f.Add(message("192.0.2.57:40112", "198.51.100.7:443", -1, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, _, err := decode(b)
		if err != nil {
			return
		}
		if err := s.Check(); err != nil {
			t.Errorf("a reading that cannot be: %v", err)
		}
	})
}
