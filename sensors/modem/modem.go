package modem

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
)

const (
	// linkWait is for how long a modem waits for the link of its network interface to be told.
	linkWait    = 3 * time.Second
	identifyMin = 10 * time.Millisecond
	identifyMax = time.Second
	bearerAgain = time.Second     // after a bearer that could not be read
	cellEvery   = 5 * time.Second // between two questions for the cell, at most
)

// modem is one modem as it was told and read last, and what was published of it. It is pure.
type modem struct {
	cfg     *config
	path    dbus.ObjectPath
	key     string // what it is known by
	info    modemInfo
	reason  uint32 // of the newest change to a state without a session
	touched bool   // its state was told after the reading under way had been asked for

	bearers map[dbus.ObjectPath]*bearer

	cell    mihf.PoA
	cellAt  mihf.Time // when it is to be read; zero: not
	cellBy  call      // under way; kind callNone: none
	noCells string    // why ModemManager does not tell

	link        mihf.LinkID // "": not known yet
	joined      bool        // the link is a network interface's
	identifyAt  mihf.Time   // when it is to be found; zero: it is
	identifyGap time.Duration
	waitsFor    mihf.Time // until then the interface's link may still be told; zero: it did not begin

	setup setup

	sent      *mihf.Association
	values    mihf.Values // as published last
	quality   mihf.Opt[quality]
	sampledAt mihf.Time

	out []mihf.Observation
}

// bearer is one of a modem's bearers.
type bearer struct {
	info    bearerInfo
	known   bool
	asked   bool      // for it was asked, and something came of it
	readAt  mihf.Time // when it is to be read; zero: not
	reading bool
}

func newModem(now mihf.Time, cfg *config, path dbus.ObjectPath, i *modemInfo, key string) *modem {
	m := &modem{cfg: cfg, path: path, key: key, bearers: make(map[dbus.ObjectPath]*bearer)}
	m.setup = setup{cfg: cfg}
	m.take(now, i)
	return m
}

// keyOf is what a modem is known by: it is the same after it was plugged in again.
func keyOf(i *modemInfo) string {
	switch {
	case strings.Trim(i.equipment, "0 ") != "":
		return "modem/" + i.equipment
	case i.identifier != "":
		return "modem/" + i.identifier
	default:
		return "modem/" + i.device
	}
}

// name shows the modem to people.
func (m *modem) name() string {
	s := "modem " + string(m.path[strings.LastIndexByte(string(m.path), '/')+1:])
	if m.info.model != "" {
		s += " (" + mihf.EscapeString(m.info.model) + ")"
	}
	return s
}

// told takes a change of state from a signal.
func (m *modem) told(now mihf.Time, state int32, reason uint32) {
	m.touched = true
	if m.info.state, m.reason = state, reason; state == stateConnected {
		m.reason = 0 // why it was connected says nothing of why it will not be
	}
	m.changed(now)
}

// take stores a reading. The state of one that was asked for before the newest signal does
// not count.
func (m *modem) take(now mihf.Time, i *modemInfo) {
	old := m.info
	m.info = *i
	if m.touched {
		m.info.state, m.info.failed = old.state, old.failed
	}
	if m.info.state != old.state || m.info.registration != old.registration || m.info.operator != old.operator || m.info.access != old.access {
		m.changed(now)
	}
	m.keepBearers(now)
	m.identifyAt = mihf.Sooner(m.identifyAt, now)
	if i.cell != "" && !m.unregistered() {
		m.cell = i.cell
	}
	m.setup.read(now, m)
}

// changed says that the state is another: what hangs on it is read again.
func (m *modem) changed(now mihf.Time) {
	for _, b := range m.bearers {
		b.readAt = now
	}
	m.cellAt = now
}

// keepBearers makes the bearers those that the modem has.
func (m *modem) keepBearers(now mihf.Time) {
	maps.DeleteFunc(m.bearers, func(path dbus.ObjectPath, _ *bearer) bool { return !slices.Contains(m.info.bearers, path) })
	for _, path := range m.info.bearers {
		if m.bearers[path] == nil {
			m.bearers[path] = &bearer{readAt: now}
		}
	}
}

// orderedBearers returns the bearers' paths, always in the same order.
func (m *modem) orderedBearers() []dbus.ObjectPath { return slices.Sorted(maps.Keys(m.bearers)) }

// connected reports whether the modem has a session that carries traffic.
func (m *modem) connected() bool {
	if m.info.state != stateConnected || m.unregistered() {
		return false
	}
	some := false
	for _, b := range m.bearers {
		if b.known && b.info.connected {
			return true
		}
		some = some || b.known
	}
	return !some
}

// unregistered reports whether ModemManager says that the modem is on no network.
func (m *modem) unregistered() bool {
	switch r, ok := m.info.registration.Get(); r {
	case registrationIdle, registrationSearching, registrationDenied:
		return ok
	}
	return false
}

// update publishes what is another than before, as soon as the link is known.
func (m *modem) update(now mihf.Time) {
	if !m.identifyAt.IsZero() {
		return
	}
	m.associate(now)
	m.sample(now)
}

// unread reports whether the modem is new and one of its bearers not read yet: that may tell
// which link it is.
func (m *modem) unread() bool {
	if m.link != "" {
		return false
	}
	for _, b := range m.bearers {
		if !b.asked {
			return true
		}
	}
	return false
}

// identified takes what is known of the modem's network interface: whether there is one, and
// its link, if that is known. Without one the modem is a link of its own.
func (m *modem) identified(now mihf.Time, there bool, id mihf.LinkID) {
	m.identifyAt = 0
	switch {
	case id != "":
		m.use(now, id, true)
	case there && m.waitsFor.IsZero():
		m.waitsFor = now.Add(linkWait)
		fallthrough
	case there && now.Before(m.waitsFor):
		m.identifyGap = min(max(2*m.identifyGap, identifyMin), identifyMax)
		m.identifyAt = min(now.Add(m.identifyGap), m.waitsFor)
		return
	default:
		m.use(now, sensors.LinkID(mihf.LinkWWAN, m.key, ""), false)
	}
	m.identifyGap = 0
	if !there || id != "" {
		m.waitsFor = 0
	}
	m.update(now)
}

// interfaceName returns the network interface of the connected bearer, else of the modem;
// "": there is none that is known.
func (m *modem) interfaceName() string {
	for _, path := range m.orderedBearers() {
		if b := m.bearers[path]; b.known && b.info.connected && slices.Contains(m.info.interfaces, b.info.name) {
			return b.info.name
		}
	}
	if len(m.info.interfaces) > 0 {
		return slices.Min(m.info.interfaces)
	}
	return ""
}

// use makes id the modem's link.
func (m *modem) use(now mihf.Time, id mihf.LinkID, joined bool) {
	if id == m.link {
		return
	}
	m.retire(now, mihf.DownUnknown)
	m.link, m.joined = id, joined
	m.values, m.quality, m.sampledAt = mihf.Values{}, mihf.Opt[quality]{}, 0
}

// retire ends what was said of the link: a network interface goes on by the kernel's word,
// the modem's own link is gone.
func (m *modem) retire(now mihf.Time, why mihf.DownReason) {
	if m.sent == nil {
		return
	}
	m.sent = nil
	if m.joined {
		m.say(now, mihf.Observation{Kind: mihf.ObsAssociation, Association: &mihf.Association{State: mihf.AssociationNone, Cause: why}})
		return
	}
	m.say(now, mihf.Observation{Kind: mihf.ObsLinkGone, Gone: why})
}

// unknown says that nothing is known of the modem any more.
func (m *modem) unknown(now mihf.Time) {
	if m.sent != nil && m.sent.State != mihf.AssociationNone {
		m.say(now, mihf.Observation{Kind: mihf.ObsAssociation, Association: &mihf.Association{State: mihf.AssociationNone, Cause: mihf.DownUnknown}})
	}
}

func (m *modem) say(now mihf.Time, o mihf.Observation) {
	o.At, o.Sensor, o.Link = now, Name, m.link
	m.out = append(m.out, o)
}

// flush returns what is to be published.
func (m *modem) flush() []mihf.Observation {
	out := m.out
	m.out = nil
	return out
}

// meaning says what is known of the attachment.
func (m *modem) meaning() mihf.AssociationState {
	switch {
	case m.connected():
		return mihf.AssociationAuthorised
	case m.info.state >= stateRegistered && !m.unregistered():
		return mihf.AssociationAssociated
	case m.info.state == 0 || m.info.state == stateInitializing:
		return mihf.AssociationNone
	default:
		return mihf.AssociationDisconnected
	}
}

// associate publishes the attachment if it is another than before. The end of one is told
// as such, also where the modem stays registered.
func (m *modem) associate(now mihf.Time) {
	state, poa, by := m.meaning(), m.cell, technologyOf(m.info.access)
	if state < mihf.AssociationAssociated {
		poa, by = "", ""
	}
	s := m.sent
	if s != nil && s.State == state && (s.PoA == poa || poa == "") && (s.Technology == by || by == "") {
		return
	}
	if s != nil && s.State == mihf.AssociationAuthorised && state == mihf.AssociationAssociated {
		m.end(now, s.PoA)
	}
	if state == mihf.AssociationDisconnected {
		if s != nil {
			poa = s.PoA
		}
		m.end(now, poa)
	} else {
		m.publish(now, &mihf.Association{State: state, PoA: poa, Technology: by})
	}
	if state < mihf.AssociationAssociated {
		m.cell = ""
	}
}

func (m *modem) publish(now mihf.Time, a *mihf.Association) {
	m.sent = a
	m.say(now, mihf.Observation{Kind: mihf.ObsAssociation, Association: a})
}

// end publishes the end of an attachment, with why.
func (m *modem) end(now mihf.Time, poa mihf.PoA) {
	a := &mihf.Association{State: mihf.AssociationDisconnected, PoA: poa, Cause: mihf.DownUnknown, Code: m.reason}
	switch r, ok := m.info.registration.Get(); {
	case m.reason == reasonUser || m.reason == reasonSuspend:
		a.Cause = mihf.DownExplicitDisconnect
	case ok && r == registrationDenied:
		a.Cause = mihf.DownAuthenticationFailure
	case m.unregistered(), m.info.state >= stateEnabled && m.info.state < stateRegistered:
		a.Cause = mihf.DownBeaconLoss // the network is not heard any more
	}
	m.publish(now, a)
}

// sample publishes the readings of the signal, if there are new ones.
func (m *modem) sample(now mihf.Time) {
	if m.sent == nil || m.sent.State < mihf.AssociationAssociated {
		m.values, m.quality, m.sampledAt = mihf.Values{}, mihf.Opt[quality]{}, 0
		return
	}
	values := m.info.values
	due := m.info.rate > 0 && (m.sampledAt.IsZero() || now.Sub(m.sampledAt) >= m.pollEvery())
	news := values != m.values || due
	if news {
		m.values, m.sampledAt = values, now
	} else {
		values = mihf.Values{}
	}
	if q, ok := m.info.quality.Get(); ok && q.recent && m.info.quality != m.quality {
		if !values.Set(mihf.ParamQuality, float64(q.percent)) {
			m.cfg.count.rejected.Add(1)
		}
	}
	m.quality = m.info.quality
	if values.Len() > 0 {
		m.say(now, mihf.Observation{Kind: mihf.ObsRadio, PoA: m.cell, Values: values})
	}
}

// pollEvery is between two readings of ModemManager's polling.
func (m *modem) pollEvery() time.Duration { return time.Duration(m.info.rate) * time.Second }

// nextList returns when the list is to be read for this modem's sake; zero: not.
func (m *modem) nextList() mihf.Time {
	if m.info.rate == 0 || m.info.state < stateRegistered || m.sampledAt.IsZero() {
		return 0
	}
	return m.sampledAt.Add(m.pollEvery())
}

// complaint says what is missing; "": nothing.
func (m *modem) complaint() string {
	switch {
	case m.info.state == stateFailed:
		why := failures[m.info.failed]
		if why == "" {
			why = "ModemManager gives reason " + strconv.FormatUint(uint64(m.info.failed), 10)
		}
		return m.name() + " cannot be used: " + why
	case m.info.state == stateLocked:
		return m.name() + " is locked: its SIM wants a code"
	case m.info.state < stateEnabled:
		return ""
	}
	if why := m.setup.complaint(); why != "" {
		return m.name() + ": " + why
	}
	return ""
}
