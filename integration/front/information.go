package front

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/mihf"
)

// Points of attachment that the tests hear.
const (
	ourAP    = mihf.PoA("02:00:00:00:00:01")
	otherAP  = mihf.PoA("02:00:00:00:00:02")
	silentAP = mihf.PoA("02:00:00:00:00:03")
)

// network is a name that is not UTF-8.
var network = []byte("\xff\xfe\x00net")

// hear makes the link attached to ourAP and hear otherAP, and silentAP without values and
// network.
func (w *bed) hear() {
	w.see(facts(true))
	w.see(mihf.Observation{Kind: mihf.ObsAssociation, Association: &mihf.Association{State: mihf.AssociationAuthorised, PoA: ourAP, SSID: network}})
	heard := mihf.Observation{Kind: mihf.ObsDetected, Detected: &mihf.Detected{PoA: otherAP, SSID: []byte{}}}
	heard.Detected.Values.Set(mihf.ParamRSSI, -71.5)
	w.see(heard)
	w.see(mihf.Observation{Kind: mihf.ObsDetected, Detected: &mihf.Detected{PoA: silentAP}})
	w.see(rssi(-60))
}

// What was heard is known, field by field as in the process: the network's octets, what is
// absent, the attachment.
func testInformation(w *bed) {
	w.hear()
	c := w.dial(w.T, alice)
	got, err := c.Information(w.ctx, mihf.InformationRequest{})
	w.must(err)
	want, err := w.broker.Information(w.ctx, mihf.Caller{UID: mihf.Some(alice)}, mihf.InformationRequest{})
	w.must(err)
	if diff := cmp.Diff(want, got, near); diff != "" {
		w.Errorf("(-in process +here)\n%s", diff)
	}
	if p := poaOf(w.T, got, ourAP); string(p.SSID) != string(network) || !p.Attached || p.Attachments != 1 || p.LCI == nil ||
		len(p.Readings) != 1 || p.Readings[0].Value != -60 || p.Link != wlan {
		w.Errorf("attached: %+v", p)
	}
	if p := poaOf(w.T, got, otherAP); p.SSID == nil || len(p.SSID) != 0 || p.Attached || p.Attachments != 0 || p.LCI != nil || p.Readings[0].Value != -71.5 {
		w.Errorf("heard: %+v, want a network that hides its name", p)
	}
	if p := poaOf(w.T, got, silentAP); p.SSID != nil || p.Readings != nil || p.LastHeard.IsZero() || p.FirstHeard > p.LastHeard {
		w.Errorf("heard without values: %+v", p)
	}
	for what, req := range map[string]mihf.InformationRequest{
		"link":        {Links: []mihf.LinkID{wlan}, PoAs: []mihf.PoA{otherAP}},
		"hidden":      {SSIDs: [][]byte{{}}},
		"network":     {SSIDs: [][]byte{[]byte("other"), network}},
		"other link":  {Links: []mihf.LinkID{"wifi-0000ffff"}},
		"other parts": {SSIDs: [][]byte{network}, PoAs: []mihf.PoA{otherAP}},
	} {
		got, err := c.Information(w.ctx, req)
		w.must(err)
		heard := map[string]mihf.PoA{"link": otherAP, "hidden": otherAP, "network": ourAP}[what]
		if (heard == "") != (len(got.PoAs) == 0) || (heard != "" && (len(got.PoAs) != 1 || got.PoAs[0].PoA != heard)) {
			w.Errorf("by %s: %+v, want %q", what, got.PoAs, heard)
		}
	}
}

func poaOf(t *testing.T, i *mihf.Information, id mihf.PoA) mihf.PoAInformation {
	t.Helper()
	for _, p := range i.PoAs {
		if p.PoA == id {
			return p
		}
	}
	t.Fatalf("%s is not in %+v", id, i.PoAs)
	return mihf.PoAInformation{}
}

func testInformationRefused(w *bed) {
	c := w.dial(w.T, alice)
	for what, req := range map[string]mihf.InformationRequest{
		"a link's name":  {Links: []mihf.LinkID{"wlan0"}},
		"too many items": {PoAs: make([]mihf.PoA, mihf.MaxInformationFilter+1)},
		"no id":          {PoAs: []mihf.PoA{""}},
		"a long network": {SSIDs: [][]byte{make([]byte, mihf.MaxSSIDBytes+1)}},
	} {
		_, err := c.Information(w.ctx, req)
		wantErr(w, what, err, mihf.ErrInvalid)
	}
}
