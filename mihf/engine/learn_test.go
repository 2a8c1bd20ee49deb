package engine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/mihf"
)

// What scans, readings and attachments say of points of attachment is known afterwards,
// with its age, also when the link is gone.
func TestInformation(t *testing.T) {
	h := newEngine(t)
	h.give(wlan, wifi4.facts())
	h.give(wlan, &mihf.Observation{Kind: mihf.ObsAssociation, Association: &mihf.Association{State: mihf.AssociationAuthorised, PoA: apA, SSID: []byte("net")}})
	h.advance(time.Second)
	h.give(wlan, radio(apA, -60))
	unnamed := radio("", -61) // of where the link is
	unnamed.At, unnamed.Age = h.now, 100*time.Millisecond
	h.give(wlan, unnamed)
	scanned := &mihf.Observation{Kind: mihf.ObsDetected, Age: 300 * time.Millisecond, Detected: &mihf.Detected{PoA: apB, SSID: []byte("other")}}
	scanned.Detected.Values.Set(mihf.ParamRSSI, -80)
	h.give(wlan, scanned)
	at := func(d time.Duration) mihf.Time { return start.Add(d) }
	a := mihf.PoAInformation{
		PoA: apA, Link: wlan, SSID: []byte("net"), FirstHeard: start, LastHeard: at(time.Second), Attached: true, Attachments: 1,
		Readings: []mihf.Reading{{Parameter: mihf.ParamRSSI, Value: -60, At: at(time.Second)}},
	}
	b := mihf.PoAInformation{
		PoA: apB, Link: wlan, SSID: []byte("other"), FirstHeard: at(700 * time.Millisecond), LastHeard: at(700 * time.Millisecond),
		Readings: []mihf.Reading{{Parameter: mihf.ParamRSSI, Value: -80, At: at(700 * time.Millisecond)}},
	}
	h.wantInformation(b, a)
	h.give(wlan, &mihf.Observation{Kind: mihf.ObsLinkGone, Gone: mihf.DownRemoved})
	a.Attached = false
	h.wantInformation(b, a)
	if kept, lost := h.e.Learned(); kept != 2 || lost.Forgotten != 0 {
		t.Errorf("%d kept, %+v", kept, lost)
	}
}

// wantInformation compares what is known, without characteristics.
func (h *engineTest) wantInformation(want ...mihf.PoAInformation) {
	got := h.e.Information(h.now, &mihf.InformationRequest{}).PoAs
	for i := range got {
		got[i].LCI = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Fatalf("(-want +got)\n%s", diff)
	}
}
