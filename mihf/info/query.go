package info

import (
	"bytes"
	"slices"

	"mihf.dev/mihf"
)

// Query answers a request with what is known at now.
func (s *Store) Query(now mihf.Time, req *mihf.InformationRequest) *mihf.Information {
	out := &mihf.Information{At: now, Forgotten: s.counts.Forgotten}
	var found []*entry
	readings := 0
	for el := s.heard.Front(); el != nil; el = el.Next() {
		if e := el.Value.(*entry); e.passes(req) {
			found = append(found, e)
			readings += len(e.readings)
		}
	}
	if len(found) == 0 {
		return out
	}
	out.PoAs = make([]mihf.PoAInformation, len(found))
	copies := make([]mihf.Reading, 0, readings) // one for all: a full store is answered in the broker's loop
	for i, e := range found {
		n := len(copies)
		copies = append(copies, e.readings...)
		out.PoAs[i] = mihf.PoAInformation{
			PoA: e.poa, Link: e.link, SSID: e.ssid, Readings: copies[n:len(copies):len(copies)], FirstHeard: e.first, LastHeard: e.last,
			Attached: s.attached[e.link] == e.key, Attachments: e.attachments, LCI: e.lci,
		}
		if len(e.readings) == 0 {
			out.PoAs[i].Readings = nil
		}
	}
	return out
}

func (e *entry) passes(req *mihf.InformationRequest) bool {
	return (len(req.Links) == 0 || slices.Contains(req.Links, e.link)) &&
		(len(req.PoAs) == 0 || slices.Contains(req.PoAs, e.poa)) &&
		(len(req.SSIDs) == 0 || slices.ContainsFunc(req.SSIDs, func(want []byte) bool { return e.ssid != nil && bytes.Equal(want, e.ssid) }))
}
