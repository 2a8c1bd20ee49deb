package mihf

import "time"

// HintKind says what a [Hint] asks for.
type HintKind uint8

// Kinds of hint.
const (
	HintFreeze HintKind = iota + 1
	HintUnfreeze
	HintPrepare
	HintSwitch
	HintAbandon
	HintCharacteristics
)

var hintNames = [...]string{"none", "freeze", "unfreeze", "prepare", "switch", "abandon", "characteristics"}

func (k HintKind) String() string { return nameOf(hintNames[:], int(k)) }

// ParseHintKind is the inverse of [HintKind.String].
func ParseHintKind(s string) (HintKind, bool) {
	i, ok := indexOf(hintNames[:], s)
	return HintKind(i), ok && i > 0
}

// HintSet is a set of hint kinds.
type HintSet uint8

// AllHints holds every kind.
const AllHints HintSet = 1<<HintFreeze | 1<<HintUnfreeze | 1<<HintPrepare | 1<<HintSwitch | 1<<HintAbandon | 1<<HintCharacteristics

// Hints returns the set of the kinds given.
func Hints(kinds ...HintKind) HintSet {
	var s HintSet
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has reports whether the set holds k.
func (s HintSet) Has(k HintKind) bool { return s&(1<<k) != 0 }

// FreezeReason says why a Freeze was given.
type FreezeReason uint8

// Reasons of a Freeze.
const (
	FreezePredicted FreezeReason = iota // a forecast; the hint names its prediction
	FreezeLinkDown                      // the link has just been lost; no prediction
	FreezeHandover                      // the network ordered a handover with a long gap
)

var freezeReasonNames = [...]string{"predicted", "link_down", "handover"}

func (r FreezeReason) String() string { return nameOf(freezeReasonNames[:], int(r)) }

// ParseFreezeReason is the inverse of [FreezeReason.String].
func ParseFreezeReason(s string) (FreezeReason, bool) {
	i, ok := indexOf(freezeReasonNames[:], s)
	return FreezeReason(i), ok
}

// Freeze asks a transport to stop sending (or to make its peer stop) and to keep its
// rate, loss and RTT state. It holds for Lease from its arrival, not longer; without a
// newer hint the transport then thaws to recovery.
type Freeze struct {
	Lease          time.Duration
	P10, P50, P90  time.Duration // time to the loss; all 0 where it has already come
	ExpectedOutage time.Duration // 0: not known
	Reason         FreezeReason
}

// UnfreezeCause says why a flow is thawed.
type UnfreezeCause uint8

// Causes of an Unfreeze.
const (
	UnfreezePathUsable UnfreezeCause = iota
	UnfreezeRollback
	UnfreezeExpired // the prediction
	UnfreezeMaxFreeze
	UnfreezeHandoverComplete
	UnfreezeBudget
	UnfreezeOperator
)

var unfreezeNames = [...]string{"path_usable", "rollback", "expired", "max_freeze", "handover_complete", "budget", "operator"}

func (c UnfreezeCause) String() string { return nameOf(unfreezeNames[:], int(c)) }

// ParseUnfreezeCause is the inverse of [UnfreezeCause.String].
func ParseUnfreezeCause(s string) (UnfreezeCause, bool) {
	i, ok := indexOf(unfreezeNames[:], s)
	return UnfreezeCause(i), ok
}

// Unfreeze thaws a flow. Recovery tells it to probe with the saved state instead of
// going on at the saved rate: the path was lost and nobody knows what is left of it.
type Unfreeze struct {
	Cause    UnfreezeCause
	Recovery bool
	LCI      *LCI // of the path it comes back onto; nil: not known
}

// Prepare names the link that a flow would be moved to, and when.
type Prepare struct {
	Target   LinkID
	Deadline time.Duration // from now; time to the expected loss (p10)
}

// Switch asks a flow that rebinds to go on over another link.
type Switch struct {
	Target LinkID
	LCI    *LCI // nil: not known
}

// AbandonReason says why a flow cannot go on.
type AbandonReason uint8

// Reasons of an Abandon.
const (
	AbandonAddressGone AbandonReason = iota
	AbandonLinkRemoved
	AbandonNoContinuity
)

var abandonNames = [...]string{"address_gone", "link_removed", "no_continuity"}

func (r AbandonReason) String() string { return nameOf(abandonNames[:], int(r)) }

// ParseAbandonReason is the inverse of [AbandonReason.String].
func ParseAbandonReason(s string) (AbandonReason, bool) {
	i, ok := indexOf(abandonNames[:], s)
	return AbandonReason(i), ok
}

// Hint is advice to one flow (RFC 4907: advisory, bounded in time, never worse than no
// hint). Hints of a flow are ordered by Epoch; a transport applies the newest only.
// Kind says which of the fields below it is set.
type Hint struct {
	Sequence   uint64
	Boot       BootID
	Flow       FlowID
	Owner      uint32 // uid of the flow's owner: who else may see the hint; not sent
	Link       LinkID // that the flow was on when the hint was made
	Epoch      uint64
	Prediction PredictionID // zero: no forecast
	At         Time
	Kind       HintKind

	Freeze          Freeze
	Unfreeze        Unfreeze
	Prepare         Prepare
	Switch          Switch
	Abandon         AbandonReason
	Characteristics *LCI
}
