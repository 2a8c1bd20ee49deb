package nl80211

import (
	"bytes"
	"time"

	"github.com/mdlayher/wifi"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

const (
	// gatherFor is how long the look waits after a message that others usually follow, so
	// that the one which says why is heard before.
	gatherFor = 20 * time.Millisecond
	// authoriseEvery is between two looks while an association is under way: the kernel
	// does not say when the supplicant has opened the port.
	authoriseEvery = 25 * time.Millisecond
	authoriseFor   = 10 * time.Second // then no faster than close to the threshold
	// idleEvery is between two looks at a station that is not attached, messages aside.
	idleEvery = 5 * time.Second
	// lossMemory is for how long a reported loss of beacons explains a disconnection.
	lossMemory = 3 * time.Second
	// refineFor is for how long a disconnection without a known reason waits for one.
	refineFor = time.Second
	// lateWord is how late the word of a scan's begin may come: what the scan has heard by then
	// is new all the same.
	lateWord  = 2 * time.Second
	scanEvery = time.Second // least time between two readings of scan results
	// scanLasts is how long a scan lasts at most: then its end was not told.
	scanLasts   = time.Minute
	surveyEvery = 5 * time.Second
	// refusedEvery is between two looks that the driver refuses; after refusedTries it is said.
	refusedEvery = time.Second
	refusedTries = 5
)

// radio is one interface as it was read last, and what was published of it. It is pure.
type radio struct {
	cfg  *config
	info iface
	id   mihf.LinkID // "": the link is not known yet

	now      attachment
	since    mihf.Time // of now's state
	peer     mihf.PoA  // station that is asked for by address; "": none
	end      ending
	turns    int       // messages that make what is being read out of date
	beaconAt mihf.Time // when a loss of beacons was reported last; zero: never
	sent     *mihf.Association
	sentAt   mihf.Time

	lookAt, pollAt, surveyAt, resultsAt mihf.Time // zero: not due
	identifyAt                          mihf.Time
	identifyGap                         time.Duration

	scanning  bool
	scanSince mihf.Time // of the scan in progress or ended last; zero: none heard of
	told      bool      // scanning, as published

	pace     pace
	sample   sampler
	table    table
	noSurvey bool // the driver has none
	busy     busyMeter
	cqmFor   mihf.PoA // the attachment that a threshold was set for
	cqmError string

	failures int // looks that the driver refused, one after the other
	failure  string

	out []mihf.Observation
}

func newRadio(now mihf.Time, cfg *config, info iface) *radio {
	r := &radio{info: info, lookAt: now, identifyAt: now, resultsAt: now}
	r.configure(cfg)
	return r
}

// look asks for a complete look at or before the moment.
func (r *radio) look(at mihf.Time) { r.lookAt = mihf.Sooner(r.lookAt, at) }

// heard takes a message about the interface.
func (r *radio) heard(now mihf.Time, e *event) {
	switch e.cmd {
	case unix.NL80211_CMD_DISCONNECT:
		r.end = ending{known: true, code: uint32(e.reason.Or(0)), byAP: e.byAP}
		r.turns++
		r.table.detached()
		if r.now.state >= mihf.AssociationAssociated {
			// This cannot wait for a look, which the driver may hold up while it goes elsewhere.
			r.now = attachment{state: mihf.AssociationDisconnected}
			r.peer = ""
			r.associate(now)
		}
		r.look(now)
	case unix.NL80211_CMD_CONNECT, unix.NL80211_CMD_ROAM, unix.NL80211_CMD_AUTHENTICATE, unix.NL80211_CMD_ASSOCIATE:
		if status := e.status.Or(0); e.failed || status != 0 {
			r.end = ending{known: true, code: uint32(status), auth: true}
		} else if e.cmd == unix.NL80211_CMD_CONNECT || e.cmd == unix.NL80211_CMD_ROAM {
			r.end = ending{}
		}
		r.turns++
		r.look(now)
	case unix.NL80211_CMD_PORT_AUTHORIZED, unix.NL80211_CMD_JOIN_IBSS, unix.NL80211_CMD_LINKS_REMOVED,
		unix.NL80211_CMD_CH_SWITCH_NOTIFY, unix.NL80211_CMD_SET_INTERFACE, unix.NL80211_CMD_NEW_INTERFACE:
		r.look(now)
	case unix.NL80211_CMD_NEW_STATION, unix.NL80211_CMD_DEL_STATION,
		unix.NL80211_CMD_DEAUTHENTICATE, unix.NL80211_CMD_DISASSOCIATE:
		r.look(now.Add(gatherFor))
	case unix.NL80211_CMD_NOTIFY_CQM:
		if e.cqm.beaconLoss {
			r.beaconAt = now
			r.sample.beaconLost()
		}
		if e.cqm.low || e.cqm.beaconLoss || e.cqm.losses {
			r.pace.alarm(now)
		}
		r.pollAt = now
	case unix.NL80211_CMD_TRIGGER_SCAN:
		r.scanning, r.scanSince = true, now
	case unix.NL80211_CMD_NEW_SCAN_RESULTS, unix.NL80211_CMD_SCAN_ABORTED:
		r.scanning = false
		r.results(now)
	case unix.NL80211_CMD_SCHED_SCAN_RESULTS:
		r.results(now)
	}
}

// results asks for the scan results to be read.
func (r *radio) results(now mihf.Time) {
	if r.resultsAt.IsZero() {
		r.resultsAt = max(now, r.table.readAt.Add(scanEvery))
	}
}

// configure replaces the configuration.
func (r *radio) configure(cfg *config) {
	r.cfg, r.pace.cfg, r.sample.cfg, r.table.cfg = cfg, cfg, cfg, cfg
}

// detected takes scan results.
func (r *radio) detected(now mihf.Time, list []bssInfo) {
	r.out = append(r.out, r.table.take(now, list, r.heardSince(now))...)
}

// refused takes note of a look that the driver refused. What was read last stands.
func (r *radio) refused(now mihf.Time, why string) {
	r.failures++
	r.failure = why
	r.pollAt = 0
	r.look(now.Add(refusedEvery))
}

// complaint says what is missing of the interface; "": nothing.
func (r *radio) complaint() string {
	why := r.sample.complaint()
	switch {
	case r.failures >= refusedTries:
		why = r.failure
	case r.cqmError != "":
		why = r.cqmError
	case r.now.state >= mihf.AssociationAssociated && r.peer == "":
		why = "the driver shows no station: only the signal of scan results is known"
	}
	if why == "" {
		return ""
	}
	return mihf.EscapeString(r.info.name) + ": " + why
}

// take stores a reading and publishes what differs.
func (r *radio) take(now mihf.Time, rd *reading) {
	r.info = rd.iface
	r.failures = 0
	if rd.hasBSS {
		r.detected(now, rd.bss)
	}
	a := r.meaning(rd)
	if a.state != r.now.state || a.poa != r.now.poa {
		r.since = now
		r.sample.begin()
		r.pace.begin(now)
		r.cqmFor = ""
	}
	r.now = a
	r.peer = ""
	if rd.station != nil {
		r.peer = rd.station.mac
	}
	if a.state >= mihf.AssociationAssociated {
		r.end = ending{}
	}
	r.associate(now)
	switch {
	case rd.station != nil:
		r.measure(now, rd.station)
	case a.state >= mihf.AssociationAssociated:
		r.fallback(now)
	}
	r.schedule(now)
}

// associate publishes the attachment if it is another than before, or if it is known now
// why it ended.
func (r *radio) associate(now mihf.Time) {
	if r.id == "" || r.now.state == mihf.AssociationNone {
		return
	}
	a := &mihf.Association{State: r.now.state, PoA: r.now.poa, SSID: r.now.ssid}
	if a.State == mihf.AssociationDisconnected {
		if r.sent != nil {
			a.PoA, a.SSID = r.sent.PoA, r.sent.SSID
		}
		a.Cause, a.Code, a.Local = r.cause(now)
	}
	if s := r.sent; s != nil && s.State == a.State && s.PoA == a.PoA && bytes.Equal(s.SSID, a.SSID) {
		refines := a.State == mihf.AssociationDisconnected && s.Cause == mihf.DownUnknown && a.Cause != mihf.DownUnknown
		if !refines || now.Sub(r.sentAt) > refineFor {
			return
		}
	}
	r.sent, r.sentAt = a, now
	r.out = append(r.out, mihf.Observation{At: now, Kind: mihf.ObsAssociation, Association: a})
}

// measure publishes a sample of the peer.
func (r *radio) measure(now mihf.Time, s *stationInfo) {
	values := r.sample.take(now, s, r.table.serving())
	if busy, ok := r.busy.get(now); ok {
		values.Set(mihf.ParamChannelBusy, busy)
	}
	r.pace.take(now, &values)
	if r.id == "" || values.Len() == 0 || r.now.state == mihf.AssociationAuthenticating {
		return
	}
	o := mihf.Observation{At: now, Kind: mihf.ObsRadio, Values: values}
	if !r.info.peers() {
		o.PoA = r.now.poa
	}
	r.out = append(r.out, o)
}

// fallback publishes the signal of the serving access point's newest beacon, where the
// driver shows no station.
func (r *radio) fallback(now mihf.Time) {
	b := r.table.serving()
	v, ok := b.signal.Get()
	heardAt := b.at(now)
	if !ok || r.id == "" || heardAt.IsZero() || !r.sample.fresh(heardAt) {
		return
	}
	var values mihf.Values
	r.sample.set(&values, mihf.ParamBeaconSignal, float64(v)/100)
	r.pace.take(now, &values)
	if values.Len() > 0 {
		r.out = append(r.out, mihf.Observation{At: now, Age: now.Sub(heardAt), Kind: mihf.ObsRadio, PoA: r.now.poa, Values: values})
	}
}

// schedule says when to look again without being told.
func (r *radio) schedule(now mihf.Time) {
	r.pollAt = 0
	if r.surveyAt.IsZero() && !r.noSurvey {
		r.surveyAt = now
	}
	under := r.now.state == mihf.AssociationAuthenticating || r.now.state == mihf.AssociationAssociated
	switch {
	case r.info.peers():
		r.look(now.Add(r.pace.interval(now)))
	case under && now.Sub(r.since) < authoriseFor:
		r.look(now.Add(authoriseEvery))
	case r.now.state < mihf.AssociationAuthenticating:
		r.surveyAt = 0
		r.look(now.Add(min(idleEvery, r.cfg.reconcile)))
	case r.peer == "": // the scan results are all there is
		r.look(now.Add(scanEvery))
	default:
		r.pollAt = now.Add(r.pace.interval(now))
		r.look(now.Add(r.cfg.reconcile))
		if r.legsOnly() {
			r.look(now.Add(scanEvery))
		}
	}
}

// legsOnly reports whether the driver gives a signal of the legs of a multi-link
// association only, in the scan results.
func (r *radio) legsOnly() bool {
	s := r.table.serving()
	return r.sample.mute > 0 && s.mld != "" && s.mld == r.peer
}

// needsScan reports whether a look that found this peer needs the scan results too.
func (r *radio) needsScan(now mihf.Time, s *stationInfo) bool {
	switch {
	case r.info.peers():
		return false
	case s == nil:
		return !r.end.known
	case r.legsOnly():
		return now.Sub(r.table.readAt) >= scanEvery
	default:
		named := r.info.ssid != nil || r.table.current(s.mac)
		return !named || !s.flags.is(unix.NL80211_STA_FLAG_ASSOCIATED).Known()
	}
}

// heardSince is when what is new in the scan results may have been heard first.
func (r *radio) heardSince(now mihf.Time) mihf.Time {
	if r.scanSince.IsZero() {
		return max(now.Add(-scanLasts/4), 1)
	}
	return max(r.scanSince.Add(-lateWord), 1)
}

// flush returns what is to be published of the interface, in order.
func (r *radio) flush(now mihf.Time) []mihf.Observation {
	if r.id == "" {
		r.out = nil
		return nil
	}
	if r.scanning && now.Sub(r.scanSince) > scanLasts {
		r.scanning = false
	}
	if r.scanning != r.told {
		r.told = r.scanning
		r.out = append(r.out, mihf.Observation{At: now, Kind: mihf.ObsScan, Scanning: r.scanning})
	}
	out := r.out
	r.out = nil
	for i := range out {
		out[i].Link, out[i].Sensor = r.id, Name
	}
	return out
}

// identify gives the interface its link; "": it has none now, and is asked for again soon.
func (r *radio) identify(now mihf.Time, id mihf.LinkID) {
	r.identifyAt = 0
	if id == "" {
		const first, most = 10 * time.Millisecond, time.Second
		r.identifyGap = min(max(2*r.identifyGap, first), most)
		r.identifyAt = now.Add(r.identifyGap)
	} else {
		r.identifyGap = 0
	}
	if r.id != id {
		r.id, r.sent, r.told = id, nil, false
		r.table.forget()
		r.look(now)
		r.results(now) // what was detected before the link was known was told to nobody
	}
}

// next returns when there is something to do.
func (r *radio) next() mihf.Time {
	var next mihf.Time
	for _, t := range []mihf.Time{r.lookAt, r.pollAt, r.surveyAt, r.resultsAt, r.identifyAt} {
		next = mihf.Sooner(next, t)
	}
	if r.scanning {
		next = mihf.Sooner(next, r.scanSince.Add(scanLasts+1))
	}
	return next
}

// wantsCQM reports whether a threshold is to be set now.
func (r *radio) wantsCQM() bool {
	return r.cfg.setCQM && r.now.state == mihf.AssociationAuthorised && r.cqmFor != r.now.poa && r.info.typ == wifi.InterfaceTypeStation
}
