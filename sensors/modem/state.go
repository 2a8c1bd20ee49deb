package modem

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
)

const (
	listGap             = 50 * time.Millisecond // least time between two readings of the list
	listAgain, listMost = 100 * time.Millisecond, 10 * time.Second
	// forgetAfter is for how long a modem's own link outlives ModemManager.
	forgetAfter = time.Minute
	maxParallel = 8 // calls under way
)

// config is what the pure parts need of [Options].
type config struct {
	poll      time.Duration // 0: never
	threshold uint32        // dB; 0: none
	never     []string      // modems whose signal is not asked for
	cells     bool
	reconcile time.Duration
	count     *counters
}

// isNever reports whether the signal of the modem is not to be asked for.
func (c *config) isNever(i *modemInfo) bool {
	return slices.ContainsFunc(c.never, func(s string) bool { return s != "" && (s == i.equipment || s == i.identifier || s == i.device) })
}

// callKind says what is asked.
type callKind uint8

const (
	callNone callKind = iota
	callList
	callBearer
	callThresholds
	callPolling
	callCell
)

// call is a question to ModemManager.
type call struct {
	kind callKind
	path dbus.ObjectPath // of the modem; callBearer: of the bearer
	arg  uint32
}

// answer is what came of a call.
type answer struct {
	call
	body []any
	err  error
}

// state is all modems as they were told and read last. It is pure: the shell puts in what it
// heard, asks what [state.calls] returns, and publishes what [state.flush] returns.
type state struct {
	cfg    *config
	owner  string // of ModemManager's name; "": none
	modems map[dbus.ObjectPath]*modem
	left   int // modems beyond maxModems

	listAt   mihf.Time // when the list is to be read
	listing  bool
	listed   uint64 // times that it was read
	known    bool   // it was read since this owner came
	askedAt  mihf.Time
	again    bool // something changed since it was asked for
	removed  map[dbus.ObjectPath]bool
	failures int
	failure  string // why the list cannot be read; "": it can
	parallel int

	orphans map[mihf.LinkID]mihf.Time // modems' own links without a modem, and when they are gone
	wrong   error                     // what could not be read in the last answer
	out     []mihf.Observation
}

func newState(cfg *config) *state {
	return &state{cfg: cfg, modems: make(map[dbus.ObjectPath]*modem), removed: make(map[dbus.ObjectPath]bool), orphans: make(map[mihf.LinkID]mihf.Time)}
}

// ordered returns the modems by path.
func (st *state) ordered() []*modem {
	return slices.SortedFunc(maps.Values(st.modems), func(a, b *modem) int { return cmp.Compare(a.path, b.path) })
}

// begin says that there is a new connection to the bus: calls under way are lost.
func (st *state) begin(now mihf.Time, owner string) {
	st.listing, st.parallel, st.known = false, 0, false
	for _, m := range st.modems {
		m.setup.asking, m.cellBy = false, call{}
		for _, b := range m.bearers {
			b.reading = false
		}
	}
	st.owns(now, owner)
	st.look(now)
}

// look asks for the list to be read.
func (st *state) look(now mihf.Time) {
	st.again = true
	if st.owner != "" {
		at := now
		if !st.askedAt.IsZero() {
			at = max(now, st.askedAt.Add(listGap))
		}
		st.listAt = mihf.Sooner(st.listAt, at)
	}
}

// lost says that signals were lost.
func (st *state) lost(now mihf.Time) {
	for _, m := range st.modems {
		m.changed(now)
	}
	st.look(now)
}

// owns takes the owner of ModemManager's name.
func (st *state) owns(now mihf.Time, owner string) {
	if owner == st.owner {
		return
	}
	if st.owner != "" {
		for _, m := range st.ordered() {
			m.unknown(now)
			st.out = append(st.out, m.flush()...)
			if m.sent != nil && !m.joined {
				st.orphan(now, m.link)
			}
		}
		clear(st.modems)
	}
	st.owner, st.left, st.listAt, st.askedAt = owner, 0, 0, 0
	st.failures, st.failure, st.known = 0, "", false
	st.look(now)
}

// orphan keeps a modem's own link for a while, for a ModemManager that comes back.
func (st *state) orphan(now mihf.Time, link mihf.LinkID) {
	if len(st.orphans) >= maxObjects {
		st.gone(now, link)
		return
	}
	st.orphans[link] = now.Add(forgetAfter)
}

func (st *state) gone(now mihf.Time, link mihf.LinkID) {
	delete(st.orphans, link)
	st.out = append(st.out, mihf.Observation{At: now, Sensor: Name, Link: link, Kind: mihf.ObsLinkGone, Gone: mihf.DownUnknown})
}

// heard takes a signal of ModemManager.
func (st *state) heard(now mihf.Time, e *event) {
	if e.sender != st.owner || st.owner == "" {
		return
	}
	switch e.kind {
	case eventRemoved:
		if st.listing {
			st.removed[e.path] = true
		}
		st.remove(now, e.path)
		st.look(now)
	case eventState:
		if m := st.modems[e.path]; m != nil {
			m.told(now, e.state, e.reason)
			m.update(now)
		}
		st.look(now)
	default:
		st.changed(now, e.path)
	}
}

// changed takes the word that an object changed.
func (st *state) changed(now mihf.Time, path dbus.ObjectPath) {
	for _, m := range st.modems {
		if b := m.bearers[path]; b != nil {
			b.readAt = now
			return
		}
	}
	st.look(now)
}

// remove forgets a modem that is gone.
func (st *state) remove(now mihf.Time, path dbus.ObjectPath) {
	m := st.modems[path]
	if m == nil {
		return
	}
	m.retire(now, mihf.DownRemoved)
	st.out = append(st.out, m.flush()...)
	delete(st.modems, path)
}

// calls returns what is to be asked now. Each is under way from then on.
func (st *state) calls(now mihf.Time) (list []call) {
	if st.owner == "" {
		return nil
	}
	add := func(c call) bool {
		if st.parallel >= maxParallel {
			return false
		}
		st.parallel++
		list = append(list, c)
		return true
	}
	if st.listAt.Due(now) && !st.listing && add(call{kind: callList, path: rootPath}) {
		st.listing, st.again, st.askedAt, st.listAt = true, false, now, 0
		clear(st.removed)
		for _, m := range st.modems {
			m.touched = false
		}
	}
	for _, m := range st.ordered() {
		for _, path := range m.orderedBearers() {
			b := m.bearers[path]
			if b.readAt.Due(now) && !b.reading && add(call{kind: callBearer, path: path}) {
				b.reading, b.readAt = true, 0
			}
		}
		if kind, arg := m.setup.want(now, m); kind != callNone && add(call{kind: kind, path: m.path, arg: arg}) {
			m.setup.asking = true
		}
		if m.wantsCell(now) && add(call{kind: callCell, path: m.path}) {
			m.cellBy, m.cellAt = call{kind: callCell, path: m.path}, 0
		}
	}
	return list
}

// answered takes what came of a call.
func (st *state) answered(now mihf.Time, a *answer) {
	st.parallel--
	switch a.kind {
	case callList:
		st.answeredList(now, a)
	case callBearer:
		st.answeredBearer(now, a)
	case callThresholds, callPolling:
		if m := st.modems[a.path]; m != nil {
			m.setup.answered(now, m, a.call, a.err)
			st.look(now)
		}
	default: // callCell
		if m := st.modems[a.path]; m != nil {
			st.note(m.answeredCell(now, a))
			m.update(now)
		}
	}
}

func (st *state) note(err error) { st.wrong = errors.Join(st.wrong, err) }

func (st *state) answeredList(now mihf.Time, a *answer) {
	st.listing = false
	var all objects
	err := a.err
	if err == nil {
		err = dbus.Store(a.body, &all)
	}
	if err != nil {
		st.failures++
		st.failure = "ModemManager does not answer, so what is known of it is what it said last: " + err.Error()
		st.listAt = now.Add(min(listAgain<<min(st.failures, 10), listMost))
		return
	}
	st.failures, st.failure = 0, ""
	st.listed++
	st.known = true
	st.takeAll(now, all)
	st.listAt = mihf.Sooner(st.listAt, now.Add(st.cfg.reconcile))
	if st.again {
		st.look(now)
	}
}

// takeAll stores a reading of all modems.
func (st *state) takeAll(now mihf.Time, all objects) {
	for _, path := range slices.Sorted(maps.Keys(st.modems)) {
		if of := all[path]; of[modemInterface] == nil && !st.modems[path].touched {
			st.remove(now, path)
		}
	}
	st.left = 0
	for _, path := range slices.Sorted(maps.Keys(all)) {
		of := all[path]
		if of[modemInterface] == nil || st.removed[path] {
			continue
		}
		var r reader
		i := decodeModem(&r, of)
		st.cfg.count.rejected.Add(r.rejected)
		if err := r.err(); err != nil {
			st.note(fmt.Errorf("%s: %w", mihf.EscapeString(string(path)), err))
		}
		m := st.modems[path]
		switch {
		case m != nil:
			m.take(now, &i)
		case len(st.modems) >= maxModems:
			st.left++
			continue
		default:
			m = newModem(now, st.cfg, path, &i, st.keyFor(&i))
			st.modems[path] = m
		}
		m.update(now)
	}
}

// keyFor returns the key of a new modem; of two that share theirs the later one's has its
// device in it.
func (st *state) keyFor(i *modemInfo) string {
	key := keyOf(i)
	for _, m := range st.modems {
		if m.key == key {
			return key + "/" + i.device
		}
	}
	return key
}

func (st *state) answeredBearer(now mihf.Time, a *answer) {
	for _, m := range st.modems {
		b := m.bearers[a.path]
		if b == nil {
			continue
		}
		b.reading, b.asked = false, true
		var d dict
		err := a.err
		if err == nil {
			err = dbus.Store(a.body, &d)
		}
		switch {
		case err == nil:
			var r reader
			b.info, b.known = decodeBearer(&r, d), true
			m.identifyAt = mihf.Sooner(m.identifyAt, now)
			st.note(r.err())
		case verdictOf(err) == verdictGone:
			b.known = false // it is gone; the list will not have it
		default:
			b.readAt = mihf.Sooner(b.readAt, now.Add(bearerAgain))
		}
		m.update(now)
		return
	}
}

// advance does what is due without being asked.
func (st *state) advance(now mihf.Time) {
	for _, m := range st.ordered() {
		if m.nextList().Due(now) && st.failures == 0 && !st.listing {
			st.listAt = mihf.Sooner(st.listAt, now)
		}
	}
	for _, link := range slices.Sorted(maps.Keys(st.orphans)) {
		if st.orphans[link].Due(now) {
			st.gone(now, link)
		}
	}
}

// flush returns what is to be published.
func (st *state) flush() []mihf.Observation {
	out := st.out
	st.out = nil
	for _, m := range st.ordered() {
		out = append(out, m.flush()...)
		if m.sent != nil {
			delete(st.orphans, m.link)
		}
	}
	return out
}

// next returns when there is something to do; zero: never.
func (st *state) next() mihf.Time {
	var next mihf.Time
	for _, at := range st.orphans {
		next = mihf.Sooner(next, at)
	}
	for _, m := range st.modems {
		if !m.unread() {
			next = mihf.Sooner(next, m.identifyAt)
		}
	}
	if st.owner == "" || st.parallel >= maxParallel { // an answer wakes the shell
		return next
	}
	if !st.listing {
		next = mihf.Sooner(next, st.listAt)
	}
	for _, m := range st.modems {
		next = mihf.Sooner(next, m.nextCall())
		if !st.listing && st.failures == 0 {
			next = mihf.Sooner(next, m.nextList())
		}
	}
	return next
}

// unidentified returns the modems whose link is to be found now.
func (st *state) unidentified(now mihf.Time) (list []*modem) {
	for _, m := range st.ordered() {
		if m.identifyAt.Due(now) && !m.unread() {
			list = append(list, m)
		}
	}
	return list
}

// conditions of the sensor, from what is known.
func (st *state) condition() (mihf.Condition, string) {
	if st.owner == "" {
		return mihf.ConditionUnavailable, "ModemManager does not run; it is noticed when it starts"
	}
	var why []string
	if st.failure != "" {
		why = append(why, st.failure)
	}
	if st.left > 0 {
		why = append(why, fmt.Sprintf("more than %d modems: %d are not looked at", maxModems, st.left))
	}
	for _, m := range st.ordered() {
		if c := m.complaint(); c != "" {
			why = append(why, c)
		}
	}
	switch {
	case len(why) > 0:
		return mihf.ConditionDegraded, strings.Join(why, "; ")
	case len(st.modems) == 0:
		return mihf.ConditionUnavailable, "ModemManager has no modem; it is noticed when it has one"
	default:
		return mihf.ConditionOK, ""
	}
}

// has reports whether an object is there, as far as is known.
func (st *state) has(path dbus.ObjectPath) bool {
	if path == rootPath || st.modems[path] != nil {
		return true
	}
	for _, m := range st.modems {
		if m.bearers[path] != nil {
			return true
		}
	}
	return false
}
