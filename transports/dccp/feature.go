package dccp

import (
	"encoding/binary"
	"slices"
)

// Feature numbers (RFC 4340, section 6.4).
const (
	featCCID         = 1
	featShortSeqnos  = 2
	featSeqWindow    = 3
	featECNIncapable = 4
	featAckRatio     = 5
	featSendAckVec   = 6
	featSendNDP      = 7
	featMinCsCov     = 8
	featCheckData    = 9
	featFreeze       = 120 // experimental: understands the Freeze extension
	featSendLossRate = 192 // of CCID 3
)

// index is the place of a known feature in the tables.
type index uint8

const (
	fCCID index = iota
	fShortSeqnos
	fSeqWindow
	fECNIncapable
	fAckRatio
	fSendAckVec
	fSendNDP
	fMinCsCov
	fCheckData
	fFreeze
	fSendLossRate
	numFeatures
)

// kind is what is known of a feature beforehand.
type kind struct {
	number   uint8
	bytes    uint8  // of a value
	initial  uint64 // value
	required bool   // an empty Confirm of it is an error
	nn       bool   // non-negotiable; else server-priority
	low, top uint64 // limits of a non-negotiable value
}

var kinds = [numFeatures]kind{
	fCCID:         {number: featCCID, bytes: 1, initial: 2, required: true},
	fShortSeqnos:  {number: featShortSeqnos, bytes: 1, required: true},
	fSeqWindow:    {number: featSeqWindow, bytes: 6, initial: 100, required: true, nn: true, low: minWindow, top: maxWindow},
	fECNIncapable: {number: featECNIncapable, bytes: 1},
	fAckRatio:     {number: featAckRatio, bytes: 2, initial: 2, nn: true, top: 1<<16 - 1},
	fSendAckVec:   {number: featSendAckVec, bytes: 1},
	fSendNDP:      {number: featSendNDP, bytes: 1},
	fMinCsCov:     {number: featMinCsCov, bytes: 1},
	fCheckData:    {number: featCheckData, bytes: 1},
	fFreeze:       {number: featFreeze, bytes: 1},
	fSendLossRate: {number: featSendLossRate, bytes: 1},
}

// Limits of the Sequence Window (section 7.5.2).
const (
	minWindow = 32
	maxWindow = 1<<46 - 1
)

func indexOf(number uint8) (index, bool) {
	switch {
	case number >= featCCID && number <= featCheckData:
		return index(number - featCCID), true
	case number == featFreeze:
		return fFreeze, true
	case number == featSendLossRate:
		return fSendLossRate, true
	default:
		return 0, false
	}
}

// negotiation is where an endpoint is with one feature (section 6.6.2). UNSTABLE, the
// state of changed preferences, does not come up: preferences change while stable only.
type negotiation uint8

const (
	stable negotiation = iota
	changing
)

// maxPreferences bounds a list of our own.
const maxPreferences = 16

// feature is one feature at one end.
type feature struct {
	value     uint64
	prefs     [maxPreferences]uint8 // of a server-priority feature, best first
	nprefs    uint8
	state     negotiation
	send      bool   // put a Change on the next packet
	fresh     bool   // that Change is new, no retransmission
	mandatory bool   // our Change is
	asked     bool   // the peer has named it in a Change
	confirm   bool   // put a Confirm on the next packet
	refuse    bool   // an empty one
	want      uint64 // proposed value of a non-negotiable feature
}

func (f *feature) list() []uint8 { return f.prefs[:f.nprefs] }

func (f *feature) prefer(values ...uint8) {
	f.nprefs = uint8(copy(f.prefs[:], values))
}

// where says at whose end a feature is.
type where uint8

const (
	local  where = iota // ours: we send Change L and Confirm L
	remote              // the peer's: we send Change R and Confirm R
)

// maxRefusals bounds the unknown features that wait for their empty Confirm; what is
// more is not answered, and asked again.
const maxRefusals = 8

// features are all features of a connection, at both ends (section 6).
type features struct {
	server bool
	at     [2][numFeatures]feature
	fgsr   Seq // greatest received with an option of features
	fgss   Seq // greatest sent with a new Change

	refusals  [maxRefusals]struct{ option, number uint8 } // of unknown features
	nrefusals int
}

func (fs *features) init(server bool, iss Seq) {
	fs.server, fs.fgss = server, iss
	for w := range fs.at {
		for i := range fs.at[w] {
			f := &fs.at[w][i]
			f.value = kinds[i].initial
			f.prefer(uint8(kinds[i].initial))
		}
	}
}

func (fs *features) value(w where, i index) uint64 { return fs.at[w][i].value }

// begin starts to negotiate, by the preferences or, for a non-negotiable one, for value.
func (fs *features) begin(w where, i index, value uint64, mandatory bool) {
	f := &fs.at[w][i]
	f.state, f.send, f.fresh, f.mandatory, f.want = changing, true, true, mandatory, value
}

// resend puts all Changes without answer onto the next packet, and reports whether there
// are any.
func (fs *features) resend() bool {
	some := false
	for w := range fs.at {
		for i := range fs.at[w] {
			f := &fs.at[w][i]
			if f.state == changing {
				f.send, some = true, true
			}
		}
	}
	return some
}

// pending reports whether options wait for a packet, and whether Changes are unanswered.
func (fs *features) pending() (waiting, unanswered bool) {
	waiting = fs.nrefusals > 0
	for w := range fs.at {
		for i := range fs.at[w] {
			f := &fs.at[w][i]
			waiting = waiting || f.send || f.confirm
			unanswered = unanswered || f.state == changing
		}
	}
	return waiting, unanswered
}

// append writes the options that wait onto a packet with the number seq. Confirms need a
// packet that acknowledges.
func (fs *features) append(b []byte, seq Seq, acks bool) []byte {
	for w := range fs.at {
		for i := range fs.at[w] {
			f := &fs.at[w][i]
			if f.confirm && acks {
				b = fs.appendConfirm(b, where(w), index(i))
				f.confirm, f.refuse = false, false
			}
			if f.send {
				b = fs.appendChange(b, where(w), index(i))
				if f.fresh {
					fs.fgss = seq
				}
				f.send, f.fresh = false, false
			}
		}
	}
	if acks {
		for _, r := range fs.refusals[:fs.nrefusals] {
			b = appendOption(b, r.option, r.number)
		}
		fs.nrefusals = 0
	}
	return b
}

func (fs *features) appendChange(b []byte, w where, i index) []byte {
	f, k := &fs.at[w][i], &kinds[i]
	if f.mandatory {
		b = append(b, optMandatory)
	}
	t := byte(optChangeL)
	if w == remote {
		t = optChangeR
	}
	if k.nn {
		return appendValue(append(b, t, 3+k.bytes, k.number), f.want, k.bytes)
	}
	return append(append(b, t, 3+f.nprefs, k.number), f.list()...)
}

func (fs *features) appendConfirm(b []byte, w where, i index) []byte {
	f, k := &fs.at[w][i], &kinds[i]
	t := byte(optConfirmL)
	if w == remote {
		t = optConfirmR
	}
	switch {
	case f.refuse:
		return append(b, t, 3, k.number)
	case k.nn:
		return appendValue(append(b, t, 3+k.bytes, k.number), f.value, k.bytes)
	default:
		return append(append(b, t, 4+f.nprefs, k.number, uint8(f.value)), f.list()...)
	}
}

func appendValue(b []byte, v uint64, bytes uint8) []byte {
	var full [8]byte
	binary.BigEndian.PutUint64(full[:], v)
	return append(b, full[8-bytes:]...)
}

func parseValue(b []byte) (v uint64) {
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

// outcome is what became of a feature option.
type outcome uint8

const (
	done       outcome = iota
	notHandled         // the option is not understood, or refused: fatal where it is Mandatory
	invalid            // a wrong Confirm: the connection is to be reset
)

// take handles an option of a packet that is not reordered. acked tells that the packet
// acknowledges our newest Change, known whether the feature may be spoken of, and changed
// that a value is in force that may be new.
func (fs *features) take(o *Option, acked bool, known func(where, index) bool) (out outcome, w where, i index, changed bool) {
	if len(o.Data) == 0 {
		return notHandled, 0, 0, false
	}
	// Change R and Confirm R speak of a feature of the receiver's, which is ours.
	w = remote
	if o.Type == optChangeR || o.Type == optConfirmR {
		w = local
	}
	if o.Type == optConfirmL || o.Type == optConfirmR {
		// Confirm R speaks of what is at its receiver's end as well.
		i, ok := indexOf(o.Data[0])
		if !ok || !known(w, i) || !acked || fs.at[w][i].state != changing {
			return done, w, i, false // section 6.6.7: ignored
		}
		out = fs.confirmed(w, i, o.Data[1:])
		return out, w, i, out == done
	}
	i, ok := indexOf(o.Data[0])
	if !ok || !known(w, i) {
		fs.refuseUnknown(w, o.Data[0])
		return notHandled, w, i, false
	}
	out, changed = fs.change(w, i, o.Data[1:], o.Mandatory)
	return out, w, i, changed
}

func (fs *features) refuseUnknown(w where, number uint8) {
	t := byte(optConfirmL)
	if w == remote {
		t = optConfirmR
	}
	if fs.nrefusals < maxRefusals {
		fs.refusals[fs.nrefusals] = struct{ option, number uint8 }{t, number}
		fs.nrefusals++
	}
}

// change takes a Change. Where both ends have started, the peer's Change answers ours
// (section 6.6.6).
func (fs *features) change(w where, i index, values []byte, mandatory bool) (out outcome, changed bool) {
	f, k := &fs.at[w][i], &kinds[i]
	value, ok := f.value, len(values) > 0
	if k.nn {
		value = parseValue(values[:min(len(values), 8)])
		ok = w == remote && len(values) == int(k.bytes) && value >= k.low && value <= k.top
	} else {
		if v, shared := fs.reconcile(f, values); shared {
			value = uint64(v)
		} else if mandatory {
			return notHandled, false // section 6.6.9
		}
	}
	if !ok {
		f.confirm, f.refuse = true, true
		return notHandled, false
	}
	f.asked, f.confirm, f.refuse = true, true, false
	if !k.nn {
		f.state, f.send = stable, false
	}
	f.value = value
	return done, true
}

// reconcile returns the first entry of the server's list that is in the client's
// (section 6.3.1).
func (fs *features) reconcile(f *feature, theirs []byte) (v uint8, shared bool) {
	servers, clients := f.list(), theirs
	if !fs.server {
		servers, clients = theirs, f.list()
	}
	for _, v := range servers {
		if slices.Contains(clients, v) {
			return v, true
		}
	}
	return 0, false
}

// confirmed takes the Confirm of our Change.
func (fs *features) confirmed(w where, i index, values []byte) outcome {
	f, k := &fs.at[w][i], &kinds[i]
	switch {
	case len(values) == 0: // not understood there, or refused
		if k.required {
			return invalid
		}
	case k.nn:
		if len(values) != int(k.bytes) || parseValue(values) != f.want {
			return invalid
		}
		f.value = f.want
	default:
		want := uint8(f.value)
		if len(values) > 1 {
			if v, shared := fs.reconcile(f, values[1:]); shared {
				want = v
			}
		} else if slices.Contains(f.list(), values[0]) {
			want = values[0]
		}
		if values[0] != want {
			return invalid
		}
		f.value = uint64(want)
	}
	f.state, f.send = stable, false
	return done
}
