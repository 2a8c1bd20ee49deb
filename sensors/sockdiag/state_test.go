package sockdiag

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/mihf"
)

const wlan = mihf.LinkID("wifi-00000001")

// stateTest reads sockets that a test changes, and writes down what is published.
type stateTest struct {
	t       *testing.T
	st      *state
	watch   *watchSet
	links   links
	sockets map[uint64]*socket
}

func newStateTest(t *testing.T) *stateTest {
	t.Helper()
	return &stateTest{
		t: t, st: newState(), watch: &watchSet{}, sockets: map[uint64]*socket{},
		links: links{addresses: map[netip.Addr]mihf.LinkID{netip.MustParseAddr("192.0.2.1"): wlan, netip.MustParseAddr("192.0.2.9"): ""}},
	}
}

func (h *stateTest) socket(cookie uint64, local, remote string) *socket {
	s := &socket{cookie: cookie}
	s.Protocol, s.Local, s.Remote = 6, netip.MustParseAddrPort(local), netip.MustParseAddrPort(remote)
	s.AckedBytes, s.ReceivedBytes = mihf.Some[uint64](0), mihf.Some[uint64](0)
	h.sockets[cookie] = s
	return s
}

func (h *stateTest) watchFor(tuples ...string) {
	var list []mihf.Endpoints
	for i := 0; i < len(tuples); i += 2 {
		t := mihf.Endpoints{Protocol: 6, Remote: netip.MustParseAddrPort(tuples[i+1])}
		if tuples[i] != "" {
			t.Local = netip.MustParseAddrPort(tuples[i])
		}
		list = append(list, t)
	}
	w, _ := newWatchSet(list)
	h.st.show(w.without(h.watch))
	h.watch = w
}

// want reads and compares what is published: "link local>remote".
func (h *stateTest) want(flows ...string) []mihf.Observation {
	h.t.Helper()
	h.st.begin()
	for c := range uint64(16) {
		if s := h.sockets[c]; s != nil {
			own := *s
			h.st.take(5, &own, h.watch, &h.links)
		}
	}
	out := h.st.end(5, &h.links)
	var got []string
	for _, o := range out {
		got = append(got, fmt.Sprintf("%s %v>%v", o.Link, o.Flow.Local, o.Flow.Remote))
	}
	if diff := cmp.Diff(flows, got); diff != "" {
		h.t.Errorf("(-want +got):\n%s", diff)
	}
	return out
}

const (
	first  = "wifi-00000001 192.0.2.1:1>203.0.113.1:443"
	second = " 127.0.0.1:2>127.0.0.1:443"
)

// "A flow is published when its reading is another than the one published before."
func TestPublishesChanges(t *testing.T) {
	h := newStateTest(t)
	s := h.socket(1, "192.0.2.1:1", "203.0.113.1:443")
	h.want(first)
	h.want()
	s.RTT = mihf.Some(time.Millisecond)
	h.want(first)
	h.want()
	delete(h.sockets, 1)
	h.want()
	if len(h.st.flows) != 0 {
		t.Error("a socket that is gone is remembered")
	}
	h.socket(2, "192.0.2.1:1", "203.0.113.1:443") // another connection with the same ends
	h.want(first)
}

// A flow that nobody watches and that is on no link is of no use; a watched one is told of anew.
func TestWatched(t *testing.T) {
	h := newStateTest(t)
	h.socket(1, "192.0.2.1:1", "203.0.113.1:443")
	h.socket(2, "127.0.0.1:2", "127.0.0.1:443")
	h.socket(3, "192.0.2.9:3", "203.0.113.1:443") // of an address that two links have
	h.want(first)
	h.watchFor("192.0.2.1:1", "203.0.113.1:443", "", "127.0.0.1:443")
	h.want(first, second)
	h.want()
	h.watchFor("192.0.2.1:1", "203.0.113.1:443", "", "127.0.0.1:443", "", "198.51.100.1:1")
	h.want() // those were watched before
	h.watchFor()
	h.watchFor("", "127.0.0.1:443")
	h.want(second)
}

// A bound socket belongs to its link.
func TestBound(t *testing.T) {
	h := newStateTest(t)
	h.links.byIndex = func(i int) (mihf.LinkID, bool) { return "wwan-00000002", i == 7 }
	h.socket(1, "192.0.2.1:1", "203.0.113.1:443").device = 7
	h.socket(2, "192.0.2.1:2", "203.0.113.1:443").device = 8 // which is none that is known
	h.want("wwan-00000002 192.0.2.1:1>203.0.113.1:443", "wifi-00000001 192.0.2.1:2>203.0.113.1:443")
}

// "The receiving side's RTT is given only while data arrives."
func TestReceiveRTT(t *testing.T) {
	h := newStateTest(t)
	s := h.socket(1, "192.0.2.1:1", "203.0.113.1:443")
	s.ReceiveRTT, s.ReceivedBytes = mihf.Some(time.Second), mihf.Some[uint64](1<<20)
	gives := func(given bool) {
		t.Helper()
		if out := h.want(first); len(out) == 1 && out[0].Flow.ReceiveRTT.Known() != given {
			t.Errorf("given %v, want %v", !given, given)
		}
	}
	gives(false) // since when, nobody knows
	s.ReceivedBytes = mihf.Some[uint64](1<<20 + minReceived)
	gives(true)
	s.ReceivedBytes = mihf.Some[uint64](1<<20 + 2*minReceived - 1)
	gives(false)
	s.ReceivedBytes = mihf.Some[uint64](0) // a count that goes back
	gives(false)
	s.ReceivedBytes = mihf.Opt[uint64]{}
	gives(false)
}

// "A reading publishes every watched flow, and of the others those that moved most data; what was left out is
// counted", and comes when its turn is.
func TestOthersAreBounded(t *testing.T) {
	h := newStateTest(t)
	const n = MaxOthers + 3
	for i := range uint64(n) {
		s := h.socket(i, fmt.Sprintf("192.0.2.1:%d", i+1), "203.0.113.1:443")
		s.AckedBytes = mihf.Some(100 + i)
	}
	h.watchFor("192.0.2.1:1", "203.0.113.1:443") // that moved least
	count := func(want int, held uint64) {
		t.Helper()
		h.st.begin()
		for i := range uint64(n) {
			own := *h.sockets[i]
			h.st.take(5, &own, h.watch, &h.links)
		}
		out := h.st.end(5, &h.links)
		if len(out) != want || h.st.heldBack != held {
			t.Errorf("%d published, %d held back, want %d and %d", len(out), h.st.heldBack, want, held)
		}
	}
	count(MaxOthers+1, 2)
	count(2, 0)
	count(0, 0)
}

func TestSocketsAreBounded(t *testing.T) {
	h := newStateTest(t)
	h.watchFor("", "203.0.113.9:443")
	h.st.begin()
	for i := range uint64(2*MaxSockets + 10) {
		s := socket{cookie: i}
		s.Protocol, s.Local, s.Remote = 6, netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("203.0.113.1:443")
		if i >= MaxSockets+5 {
			s.Remote = netip.MustParseAddrPort("203.0.113.9:443")
		}
		h.st.take(5, &s, h.watch, &h.links)
	}
	if len(h.st.flows) != 2*MaxSockets || h.st.forgotten != 10 {
		t.Errorf("%d remembered, %d forgotten", len(h.st.flows), h.st.forgotten)
	}
}

func TestWatchSet(t *testing.T) {
	tuple := func(protocol mihf.Protocol, local, remote string) mihf.Endpoints {
		e := mihf.Endpoints{Protocol: protocol}
		if local != "" {
			e.Local = netip.MustParseAddrPort(local)
		}
		if remote != "" {
			e.Remote = netip.MustParseAddrPort(remote)
		}
		return e
	}
	w, left := newWatchSet([]mihf.Endpoints{
		tuple(6, "192.0.2.1:1", "203.0.113.1:443"), tuple(6, "[::ffff:192.0.2.1]:1", "[::ffff:203.0.113.1]:443"), // the same
		tuple(17, "192.0.2.1:1", "203.0.113.1:443"), tuple(6, "192.0.2.1:1", ""), // none of ours
		tuple(0, "0.0.0.0:0", "203.0.113.2:0"), tuple(6, "", "[fe80::1%eth0]:5"),
	})
	if len(w.tuples) != 3 || left != 0 {
		t.Errorf("%v, %d left", w.tuples, left)
	}
	filter := w.alternatives(map[netip.Addr]mihf.LinkID{netip.MustParseAddr("192.0.2.1"): wlan})
	want := []alternative{
		{local: endpoint{addr: netip.MustParseAddr("192.0.2.1")}},
		{remote: endpoint{addr: netip.MustParseAddr("203.0.113.2")}},
		{remote: endpoint{addr: netip.MustParseAddr("fe80::1"), port: 5}},
	}
	if diff := cmp.Diff(want, filter, cmp.AllowUnexported(alternative{}, endpoint{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var many []mihf.Endpoints
	for i := range MaxWatched + 7 {
		many = append(many, tuple(6, fmt.Sprintf("192.0.2.1:%d", i+1), "203.0.113.1:443"))
	}
	if w, left = newWatchSet(many); len(w.tuples) != MaxWatched || left != 7 {
		t.Errorf("%d watched, %d left", len(w.tuples), left)
	}
	if n := len(w.alternatives(nil)); n != maxAlternatives+1 || program(w.alternatives(nil)) != nil {
		t.Errorf("%d alternatives", n)
	}
}
