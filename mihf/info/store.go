package info

import (
	"bytes"
	"container/list"
	"slices"
	"strings"

	"mihf.dev/mihf"
)

// DefaultLimit is how many points of attachment are kept where nothing else is said.
const DefaultLimit = 2048

// Store is what was learned in one run of a broker. Package comment: its promises.
type Store struct {
	limit    int
	known    map[key]*list.Element // of *entry
	heard    list.List             // the one heard last comes first
	attached map[mihf.LinkID]key   // what each link is attached to now
	counts   Counts
}

// Counts are what a store did not keep.
type Counts struct {
	Forgotten uint64 // points of attachment that made room for others
	Refused   uint64 // observations of one with an impossible id or network
}

// key is a point of attachment as one link sees it.
type key struct {
	link mihf.LinkID
	poa  mihf.PoA
}

type entry struct {
	key
	ssid        []byte
	readings    []mihf.Reading // by parameter
	first, last mihf.Time
	attachments uint64
	lci         *mihf.LCI
}

// New returns an empty store for at most limit points of attachment (below 1:
// [DefaultLimit]).
func New(limit int) *Store {
	if limit < 1 {
		limit = DefaultLimit
	}
	return &Store{limit: limit, known: map[key]*list.Element{}, attached: map[mihf.LinkID]key{}}
}

// Hear notes that a link heard a point of attachment at a moment, with the values read
// then. A nil ssid leaves the network as it was known.
func (s *Store) Hear(link mihf.LinkID, poa mihf.PoA, ssid []byte, values *mihf.Values, at mihf.Time) {
	if poa == "" {
		return
	}
	e := s.entry(key{link, poa}, ssid, at)
	if e == nil {
		return
	}
	values.All(func(p mihf.Parameter, v float64) bool {
		e.read(mihf.Reading{Parameter: p, Value: v, At: at})
		return true
	})
}

// Attach notes what a link is attached to: "" for nothing, or for what has no id. Each
// change to a point of attachment counts as an attachment to it. A nil ssid is not known.
func (s *Store) Attach(now mihf.Time, link mihf.LinkID, poa mihf.PoA, ssid []byte, lci *mihf.LCI) {
	k := key{link, poa}
	if was, attached := s.attached[link]; attached && was == k {
		e := s.known[k].Value.(*entry) // what a link is attached to is not forgotten
		e.lci = lci
		e.name(ssid)
		return
	}
	delete(s.attached, link)
	if poa == "" {
		return
	}
	if e := s.entry(k, ssid, now); e != nil {
		e.lci = lci
		e.attachments++
		s.attached[link] = k
	}
}

// LCI returns the newest characteristics of a link at a point of attachment; nil: none are known.
func (s *Store) LCI(link mihf.LinkID, poa mihf.PoA) *mihf.LCI {
	if el := s.known[key{link, poa}]; el != nil {
		return el.Value.(*entry).lci
	}
	return nil
}

// entry returns what is kept of k, heard at a moment; nil if it cannot be kept.
func (s *Store) entry(k key, ssid []byte, at mihf.Time) *entry {
	if len(k.poa) > mihf.MaxPoABytes || len(ssid) > mihf.MaxSSIDBytes {
		s.counts.Refused++
		return nil
	}
	el := s.known[k]
	if el == nil {
		k = key{mihf.LinkID(strings.Clone(string(k.link))), mihf.PoA(strings.Clone(string(k.poa)))} // of a line that may be long
		el = s.heard.PushFront(&entry{key: k, first: at, last: at})
		s.known[k] = el
		s.makeRoom(el)
	}
	s.heard.MoveToFront(el)
	e := el.Value.(*entry)
	e.first, e.last = min(e.first, at), max(e.last, at)
	e.name(ssid)
	return e
}

// name keeps the network's name where it is known and possible.
func (e *entry) name(ssid []byte) {
	if ssid != nil && len(ssid) <= mihf.MaxSSIDBytes && (e.ssid == nil || !bytes.Equal(e.ssid, ssid)) {
		e.ssid = append([]byte{}, ssid...)
	}
}

// makeRoom forgets what was heard least lately and is in nobody's use, but for spare.
func (s *Store) makeRoom(spare *list.Element) {
	for el := s.heard.Back(); len(s.known) > s.limit && el != nil; {
		before, e := el.Prev(), el.Value.(*entry)
		if el != spare && s.attached[e.link] != e.key {
			s.heard.Remove(el)
			delete(s.known, e.key)
			s.counts.Forgotten++
		}
		el = before
	}
}

// read keeps the reading if it is the newest of its parameter.
func (e *entry) read(r mihf.Reading) {
	i, known := slices.BinarySearchFunc(e.readings, r.Parameter, func(x mihf.Reading, p mihf.Parameter) int { return int(x.Parameter) - int(p) })
	switch {
	case !known:
		e.readings = slices.Insert(e.readings, i, r)
	case e.readings[i].At <= r.At:
		e.readings[i] = r
	}
}

// Counts returns what was not kept.
func (s *Store) Counts() Counts { return s.counts }

// Len returns how many points of attachment are kept.
func (s *Store) Len() int { return len(s.known) }
