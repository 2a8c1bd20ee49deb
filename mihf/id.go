package mihf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// NodeID names the host that runs a broker.
type NodeID string

// BootID names one run of a broker. Sequence numbers, epochs and predictions of
// different runs are unrelated. Zero means unknown.
type BootID uint32

// String shows the id as 8 hexadecimal digits.
func (b BootID) String() string {
	var s [8]byte
	for i := range s {
		s[7-i] = "0123456789abcdef"[b>>(4*i)&15]
	}
	return string(s[:])
}

// ParseBootID reads what [BootID.String] wrote.
func ParseBootID(s string) (BootID, error) {
	if len(s) != 8 {
		return 0, fmt.Errorf("boot id %.40q: want 8 hexadecimal digits", s)
	}
	v, err := strconv.ParseUint(s, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("boot id %.40q: want 8 hexadecimal digits", s)
	}
	return BootID(v), nil
}

// LinkType is the technology of a link.
type LinkType uint8

// Link types. Their names are the first part of a [LinkID].
const (
	LinkOther LinkType = iota
	LinkEthernet
	LinkWiFi
	LinkWWAN
	LinkTunnel
	LinkLoopback
)

var linkTypeNames = [...]string{"other", "ethernet", "wifi", "wwan", "tunnel", "loopback"}

// String returns the type's name as used in link ids.
func (t LinkType) String() string { return nameOf(linkTypeNames[:], int(t)) }

// ParseLinkType is the inverse of [LinkType.String].
func ParseLinkType(s string) (LinkType, bool) {
	i, ok := indexOf(linkTypeNames[:], s)
	return LinkType(i), ok
}

// LinkID names one link for as long as its hardware (or modem and bearer) is the
// same: "<type>-<8 hex digits>". It survives renaming, re-plugging and restarts.
type LinkID string

// NewLinkID derives the id of a link from its stored key: the permanent hardware
// address, else modem equipment id and bearer, else device path, each with the
// network namespace where it is not the daemon's own.
func NewLinkID(t LinkType, key string) LinkID {
	sum := sha256.Sum256([]byte(key))
	return LinkID(t.String() + "-" + hex.EncodeToString(sum[:4]))
}

// Type returns the technology that the id names.
func (id LinkID) Type() LinkType {
	name, _, _ := strings.Cut(string(id), "-")
	t, _ := ParseLinkType(name)
	return t
}

// Valid reports whether the id has the form "<type>-<8 hex digits>", in lower case: an id
// has one spelling.
func (id LinkID) Valid() bool {
	name, hash, ok := strings.Cut(string(id), "-")
	if _, known := ParseLinkType(name); !ok || !known || len(hash) != 8 {
		return false
	}
	return strings.Trim(hash, "0123456789abcdef") == ""
}

// PoA is a point of attachment: a BSSID ("02:00:00:00:00:01") or a cell
// ("<plmn>-<cell>"). Empty means unknown. PoAs are location data.
type PoA string

// FlowID names a registered flow: a ULID given at registration.
type FlowID string

// PredictionID names one prediction of one broker run. The zero value means none.
type PredictionID struct {
	Boot BootID
	N    uint64
}

// IsZero reports whether p names no prediction.
func (p PredictionID) IsZero() bool { return p == PredictionID{} }

// String shows p as "<boot id>-<n>", or "" for none.
func (p PredictionID) String() string {
	if p.IsZero() {
		return ""
	}
	return p.Boot.String() + "-" + strconv.FormatUint(p.N, 10)
}

// ParsePredictionID reads what [PredictionID.String] wrote; "" is no prediction.
func ParsePredictionID(s string) (PredictionID, error) {
	if s == "" {
		return PredictionID{}, nil
	}
	boot, n, ok := strings.Cut(s, "-")
	if !ok {
		return PredictionID{}, fmt.Errorf("prediction id %.40q: want <boot id>-<number>", s)
	}
	b, err := ParseBootID(boot)
	if err != nil {
		return PredictionID{}, fmt.Errorf("prediction id %.40q: %w", s, err)
	}
	v, err := strconv.ParseUint(n, 10, 64)
	if err != nil {
		return PredictionID{}, fmt.Errorf("prediction id %.40q: want <boot id>-<number>", s)
	}
	return PredictionID{Boot: b, N: v}, nil
}

func nameOf(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return "unknown"
	}
	return names[i]
}

func indexOf(names []string, s string) (int, bool) {
	for i, n := range names {
		if n == s {
			return i, true
		}
	}
	return 0, false
}
