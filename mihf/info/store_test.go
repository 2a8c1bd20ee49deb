package info_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/info"
)

const (
	wlan = mihf.LinkID("wifi-00000001")
	wwan = mihf.LinkID("wwan-00000002")
)

var start = mihf.Time(time.Hour)

func rssi(v float64) *mihf.Values {
	vs := &mihf.Values{}
	vs.Set(mihf.ParamRSSI, v)
	return vs
}

// all is what the store answers, oldest news last.
func all(s *info.Store, q mihf.InformationRequest) []mihf.PoAInformation {
	return s.Query(start.Add(time.Minute), &q).PoAs
}

func poas(s *info.Store) string {
	var ids []string
	for _, p := range all(s, mihf.InformationRequest{}) {
		ids = append(ids, string(p.PoA))
	}
	return strings.Join(ids, " ")
}

// "A reading is the newest of its parameter by the moment when it was true, whatever order
// readings come in, and keeps that moment."
func TestNewestReading(t *testing.T) {
	s := info.New(0)
	s.Hear(wlan, "ap", nil, rssi(-60), start.Add(2*time.Second))
	s.Hear(wlan, "ap", []byte("net"), rssi(-70), start.Add(time.Second))
	quality := &mihf.Values{}
	quality.Set(mihf.ParamRSSIAverage, -65)
	s.Hear(wlan, "ap", nil, quality, start.Add(3*time.Second))
	want := []mihf.PoAInformation{{
		PoA: "ap", Link: wlan, SSID: []byte("net"), FirstHeard: start.Add(time.Second), LastHeard: start.Add(3 * time.Second),
		Readings: []mihf.Reading{
			{Parameter: mihf.ParamRSSI, Value: -60, At: start.Add(2 * time.Second)},
			{Parameter: mihf.ParamRSSIAverage, Value: -65, At: start.Add(3 * time.Second)},
		},
	}}
	if diff := cmp.Diff(want, all(s, mihf.InformationRequest{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A network that hides its name is not one whose name is not known.
func TestHiddenNetwork(t *testing.T) {
	s := info.New(0)
	s.Hear(wlan, "unknown", nil, rssi(-60), start)
	s.Hear(wlan, "hidden", []byte{}, rssi(-60), start)
	s.Hear(wlan, "hidden", nil, rssi(-61), start)
	got := all(s, mihf.InformationRequest{SSIDs: [][]byte{{}}})
	if len(got) != 1 || got[0].PoA != "hidden" || got[0].SSID == nil {
		t.Errorf("%+v, want the hidden one", got)
	}
}

// Each change to a point of attachment counts once, whatever else is said of the link.
func TestAttachments(t *testing.T) {
	s := info.New(0)
	lci := &mihf.LCI{Link: wlan, PoA: "a"}
	s.Attach(start, wlan, "a", nil, nil)
	s.Attach(start.Add(1), wlan, "a", []byte("net"), lci)
	s.Attach(start.Add(2), wlan, "b", []byte("net"), nil)
	s.Attach(start.Add(3), wlan, "a", []byte("net"), lci)
	s.Attach(start.Add(4), wlan, "", nil, nil)
	s.Attach(start.Add(5), wlan, "a", []byte("net"), lci)
	s.Attach(start.Add(6), wwan, "a", nil, nil)
	s.Attach(start.Add(7), wwan, "", nil, nil)
	type row struct {
		Link     mihf.LinkID
		PoA      mihf.PoA
		Attached bool
		N        uint64
		LCI      *mihf.LCI
		Last     mihf.Time
	}
	var got []row
	for _, p := range all(s, mihf.InformationRequest{}) {
		got = append(got, row{p.Link, p.PoA, p.Attached, p.Attachments, p.LCI, p.LastHeard})
	}
	want := []row{{wwan, "a", false, 1, nil, start.Add(6)}, {wlan, "a", true, 3, lci, start.Add(5)}, {wlan, "b", false, 1, nil, start.Add(2)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// "Where there is no room, the point of attachment that was heard least lately goes, and is
// counted; one that a link is attached to is not given up for one that is only heard."
func TestRoom(t *testing.T) {
	s := info.New(3)
	s.Attach(start, wlan, "ours", nil, nil)
	for i := range 4 {
		s.Hear(wlan, mihf.PoA(fmt.Sprint("ap", i)), nil, &mihf.Values{}, start.Add(time.Duration(i)))
	}
	if got := poas(s); got != "ap3 ap2 ours" {
		t.Errorf("kept %q", got)
	}
	s.Hear(wlan, "ap2", nil, &mihf.Values{}, start)
	s.Hear(wwan, "ap9", nil, &mihf.Values{}, start)
	if got := poas(s); got != "ap9 ap2 ours" {
		t.Errorf("kept %q", got)
	}
	if c := s.Counts(); c.Forgotten != 3 {
		t.Errorf("%d forgotten, want 3", c.Forgotten)
	}
	if got := s.Query(start, &mihf.InformationRequest{}); got.Forgotten != 3 || got.At != start {
		t.Errorf("the answer says %d forgotten at %v", got.Forgotten, got.At)
	}
}

// "An id or a network's name that is longer than such a thing can be is not kept, and is
// counted."
func TestImpossible(t *testing.T) {
	s := info.New(0)
	long := mihf.PoA(strings.Repeat("a", mihf.MaxPoABytes+1))
	s.Hear(wlan, "", nil, rssi(-60), start)
	s.Hear(wlan, long, nil, rssi(-60), start)
	s.Hear(wlan, "ap", make([]byte, mihf.MaxSSIDBytes+1), rssi(-60), start)
	s.Attach(start, wlan, long, nil, nil)
	if s.Len() != 0 || s.Counts().Refused != 3 {
		t.Errorf("%d kept, %d refused", s.Len(), s.Counts().Refused)
	}
}

// "What it answers shares nothing that changes later."
func TestAnswerStands(t *testing.T) {
	s := info.New(0)
	s.Hear(wlan, "ap", []byte("net"), rssi(-60), start)
	before, again := all(s, mihf.InformationRequest{}), all(s, mihf.InformationRequest{})
	s.Hear(wlan, "ap", []byte("new"), rssi(-61), start.Add(1))
	if diff := cmp.Diff(again, before); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
}

// "What is known already is brought up to date without an allocation."
func TestNoAllocation(t *testing.T) {
	s := info.New(0)
	ssid := []byte("net")
	vs := rssi(-60)
	now := start
	round := func() {
		now++
		s.Hear(wlan, "a", ssid, vs, now)
		s.Hear(wlan, "b", nil, vs, now)
		s.Attach(now, wlan, "a", ssid, nil)
		s.Attach(now, wlan, "b", ssid, nil)
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A dumb model gives the same answers, whatever happens.
func TestTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const limit = 4
		s := info.New(limit)
		var list []mihf.PoAInformation // heard last comes first
		forgotten := uint64(0)
		at := func(link mihf.LinkID, poa mihf.PoA) int {
			return slices.IndexFunc(list, func(p mihf.PoAInformation) bool { return p.Link == link && p.PoA == poa })
		}
		touch := func(link mihf.LinkID, poa mihf.PoA, now mihf.Time) *mihf.PoAInformation {
			p := mihf.PoAInformation{Link: link, PoA: poa, FirstHeard: now, LastHeard: now}
			if i := at(link, poa); i >= 0 {
				p = list[i]
				list = slices.Delete(list, i, i+1)
			}
			p.LastHeard = now
			list = slices.Insert(list, 0, p)
			for i := len(list) - 1; len(list) > limit && i > 0; i-- {
				if !list[i].Attached {
					list = slices.Delete(list, i, i+1)
					forgotten++
				}
			}
			return &list[0]
		}
		for step := range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now := start.Add(time.Duration(step))
			link := rapid.SampledFrom([]mihf.LinkID{wlan, wwan}).Draw(rt, "link")
			poa := mihf.PoA(rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f"}).Draw(rt, "poa"))
			if rapid.Bool().Draw(rt, "hear") {
				s.Hear(link, poa, nil, &mihf.Values{}, now)
				if poa != "" {
					touch(link, poa, now)
				}
			} else {
				s.Attach(now, link, poa, nil, nil)
				i := at(link, poa)
				if i < 0 || !list[i].Attached {
					for j := range list {
						if list[j].Link == link {
							list[j].Attached = false
						}
					}
					if poa != "" {
						p := touch(link, poa, now)
						p.Attached = true
						p.Attachments++
					}
				}
			}
			got := s.Query(now, &mihf.InformationRequest{})
			if diff := cmp.Diff(list, got.PoAs, cmpopts.EquateEmpty()); diff != "" || got.Forgotten != forgotten {
				rt.Fatalf("%d forgotten, want %d (-want +got)\n%s", got.Forgotten, forgotten, diff)
			}
		}
	})
}

// An answer from a full store is made in the broker's loop.
func BenchmarkQuery(b *testing.B) {
	s := info.New(0)
	for i := range info.DefaultLimit {
		s.Hear(wlan, mihf.PoA(fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8, i&255)), []byte("net"), rssi(-60), start.Add(time.Duration(i)))
	}
	for b.Loop() {
		if n := len(s.Query(start, &mihf.InformationRequest{}).PoAs); n != info.DefaultLimit {
			b.Fatal(n)
		}
	}
}
