package nl80211

import (
	"bytes"
	"cmp"
	"math"
	"net"
	"slices"
	"time"

	"mihf.dev/mihf"
)

const (
	// maxDetected is how many detections one reading of scan results gives, strongest first.
	maxDetected = 64
	// maxTable is how many access points are remembered.
	maxTable = 256
	// What is heard again is published again when it differs by that much, or is so old.
	detectStep  = 5.0 // dB
	detectEvery = 30 * time.Second
)

// table is what the kernel's scan results say. It is pure.
type table struct {
	cfg    *config
	list   []bssInfo // as read last, strongest first
	readAt mihf.Time
	sent   map[mihf.PoA]detection
}

type detection struct {
	at     mihf.Time // when it was heard
	signal float64
	ssid   []byte
}

// at returns when the access point was heard; zero where that is not known.
func (b *bssInfo) at(now mihf.Time) mihf.Time {
	if ns, ok := b.seen.Get(); ok && ns > 0 && ns <= math.MaxInt64 {
		return min(mihf.Time(ns), now)
	}
	if age, ok := b.age.Get(); ok {
		return max(now.Add(-age), 1)
	}
	return 0
}

func (b *bssInfo) strength() float64 {
	if v, ok := b.signal.Get(); ok {
		return float64(v) / 100
	}
	return float64(b.quality.Or(0)) - 200 // behind all that have a signal
}

// take stores the results and returns detections of what was heard at or after since, and
// is new, different or old.
func (t *table) take(now mihf.Time, list []bssInfo, since mihf.Time) []mihf.Observation {
	slices.SortStableFunc(list, func(a, b bssInfo) int { return cmp.Compare(b.strength(), a.strength()) })
	t.list, t.readAt = list[:min(len(list), maxTable)], now
	if i := slices.IndexFunc(list, func(b bssInfo) bool { return b.associated }); i >= maxTable {
		t.list[maxTable-1] = list[i]
	}
	var out []mihf.Observation
	kept := make(map[mihf.PoA]detection, len(t.list))
	for i := range t.list {
		b := &t.list[i]
		before, known := t.sent[b.bssid]
		if known {
			kept[b.bssid] = before
		}
		heardAt := b.at(now)
		if heardAt.IsZero() || heardAt.Before(since) || (known && !t.differs(b, &before, heardAt)) {
			continue
		}
		if len(out) == maxDetected {
			t.cfg.count.undetected.Add(1)
			continue
		}
		kept[b.bssid] = detection{at: heardAt, signal: b.strength(), ssid: b.ssid}
		d := &mihf.Detected{PoA: b.bssid, SSID: b.ssid}
		if v, ok := b.signal.Get(); ok {
			d.Values.Set(mihf.ParamRSSI, float64(v)/100)
		}
		if v, ok := b.quality.Get(); ok {
			d.Values.Set(mihf.ParamQuality, float64(v))
		}
		out = append(out, mihf.Observation{At: now, Age: now.Sub(heardAt), Kind: mihf.ObsDetected, Detected: d})
	}
	t.sent = kept
	return out
}

// forget takes what was told back: it was told of another link, or of none.
func (t *table) forget() { t.sent = nil }

func (t *table) differs(b *bssInfo, before *detection, heardAt mihf.Time) bool {
	return heardAt > before.at && (heardAt.Sub(before.at) >= detectEvery ||
		math.Abs(b.strength()-before.signal) >= detectStep || !bytes.Equal(b.ssid, before.ssid))
}

// serving returns the access point that the interface is associated with, of several legs
// the one heard best. The zero bssInfo: none.
func (t *table) serving() bssInfo {
	for i := range t.list {
		if t.list[i].associated {
			return t.list[i]
		}
	}
	return bssInfo{}
}

// detached says that the interface is associated with nothing that was read.
func (t *table) detached() {
	for i := range t.list {
		t.list[i].associated = false
	}
}

// current reports whether the results show the access point or multi-link device as the one
// that the interface is associated with, and name its network: others may be old.
func (t *table) current(poa mihf.PoA) bool {
	s := t.serving()
	return s.ssid != nil && (s.bssid == poa || s.mld == poa)
}

// ssid returns the network of an access point or multi-link device; nil if not known. The
// kernel may list one several times, for it keeps what an access point was before: then the
// entry that the interface is associated with counts, else the one heard last.
func (t *table) ssid(poa mihf.PoA) []byte {
	var best *bssInfo
	for i := range t.list {
		b := &t.list[i]
		if b.ssid == nil || (b.bssid != poa && b.mld != poa) {
			continue
		}
		if b.associated {
			return b.ssid
		}
		if best == nil || b.at(t.readAt) > best.at(t.readAt) {
			best = b
		}
	}
	if best == nil {
		return nil
	}
	return best.ssid
}

func parseAddress(poa mihf.PoA) ([]byte, error) { return net.ParseMAC(string(poa)) }
