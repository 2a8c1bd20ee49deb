package nl80211

import (
	"math"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// reading is one look at an interface.
type reading struct {
	iface   iface
	station *stationInfo // the peer; nil: the driver shows none
	bss     []bssInfo    // nil where hasBSS is false
	hasBSS  bool         // the scan results were read
}

// attachment is what a reading means.
type attachment struct {
	state mihf.AssociationState
	poa   mihf.PoA
	ssid  []byte
}

// ending is what messages said of the end of an attachment, or of an attempt.
type ending struct {
	known bool
	code  uint32
	byAP  bool
	auth  bool // an attempt failed
}

// choose returns the peer that a list of stations means for the interface: the access
// point, or of equals the one heard best.
func choose(i *iface, list []stationInfo) *stationInfo {
	var best *stationInfo
	for n := range list {
		s := &list[n]
		if s.flags.is(unix.NL80211_STA_FLAG_TDLS_PEER).Or(false) {
			continue
		}
		if best == nil || better(i, s, best) {
			best = s
		}
	}
	return best
}

func better(i *iface, a, b *stationInfo) bool {
	if i.station() {
		const flag = unix.NL80211_STA_FLAG_ASSOCIATED
		return a.flags.is(flag).Or(false) && !b.flags.is(flag).Or(false)
	}
	return a.signal.Or(math.MinInt8) > b.signal.Or(math.MinInt8)
}

// meaning says what a reading means for the attachment.
func (r *radio) meaning(rd *reading) attachment {
	switch {
	case rd.iface.peers():
		return attachment{}
	case rd.station != nil:
		a := attachment{poa: rd.station.mac, ssid: r.network(rd, rd.station.mac)}
		f := rd.station.flags
		associated := f.is(unix.NL80211_STA_FLAG_ASSOCIATED).Or(!rd.hasBSS || r.table.serving().bssid != "")
		authorised := f.is(unix.NL80211_STA_FLAG_AUTHORIZED).Or(associated)
		switch {
		case authorised:
			a.state = mihf.AssociationAuthorised
		case associated:
			a.state = mihf.AssociationAssociated
		default:
			a.state = mihf.AssociationAuthenticating
		}
		return a
	}
	// A driver may show no station although the interface is associated: then the scan
	// results say so, unless the kernel has just said that it ended.
	if s := r.table.serving(); rd.hasBSS && s.bssid != "" && !r.end.known {
		poa := s.bssid
		if s.mld != "" {
			poa = s.mld
		}
		return attachment{state: mihf.AssociationAuthorised, poa: poa, ssid: r.network(rd, poa)}
	}
	return attachment{state: mihf.AssociationDisconnected}
}

// network returns the name of the network that a point of attachment belongs to.
// What the kernel says of the connection is certain; scan results may be those of a network
// that the access point had before.
func (r *radio) network(rd *reading, poa mihf.PoA) []byte {
	if rd.iface.ssid != nil {
		return rd.iface.ssid
	}
	if s := r.table.ssid(poa); s != nil {
		return s
	}
	if poa == r.now.poa {
		return r.now.ssid
	}
	return nil
}

// cause says why the attachment ended.
func (r *radio) cause(now mihf.Time) (reason mihf.DownReason, code uint32, local bool) {
	const inactivity = 4 // what the kernel gives when beacons stay away
	e := &r.end
	lost := !r.beaconAt.IsZero() && now.Sub(r.beaconAt) <= lossMemory
	switch {
	case !e.known && lost:
		return mihf.DownBeaconLoss, 0, false
	case !e.known:
		return mihf.DownUnknown, 0, false
	case e.auth:
		return mihf.DownAuthenticationFailure, e.code, false
	case e.byAP:
		return reasonOf(e.code), e.code, false
	case lost, e.code == inactivity:
		return mihf.DownBeaconLoss, e.code, false
	default:
		return mihf.DownExplicitDisconnect, e.code, true
	}
}
