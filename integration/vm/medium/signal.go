package medium

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Signal is the strength of one direction over time, counted from the moment at which it
// was set. It answers the same at the same time.
type Signal interface {
	// At returns false where nothing is heard.
	At(d time.Duration) (dBm float64, heard bool)
}

// Steady is a signal, in dBm, that stays.
type Steady float64

// At returns the signal.
func (s Steady) At(time.Duration) (float64, bool) { return float64(s), true }

// Silence is a pair that hears nothing.
type Silence struct{}

// At returns false.
func (Silence) At(time.Duration) (float64, bool) { return 0, false }

// A Point of a script: from here to the next one the signal changes evenly, or nothing is
// heard.
type Point struct {
	At     time.Duration
	DBm    float64
	Silent bool // from here to the next point
}

// A Script is a signal by points in the order of time. Before the first and behind the last
// it is as there; without points nothing is heard.
type Script []Point

// At follows the script.
func (s Script) At(d time.Duration) (float64, bool) {
	i, exact := slices.BinarySearchFunc(s, d, func(p Point, d time.Duration) int { return int(max(-1, min(1, p.At-d))) })
	if exact {
		for i+1 < len(s) && s[i+1].At == d { // a jump: the last one counts
			i++
		}
		return s[i].DBm, !s[i].Silent
	}
	switch {
	case len(s) == 0:
		return 0, false
	case i == 0:
		return s[0].DBm, !s[0].Silent
	case i == len(s) || s[i-1].Silent || s[i].Silent:
		return s[i-1].DBm, !s[i-1].Silent
	}
	from, to := s[i-1], s[i]
	part := float64(d-from.At) / float64(to.At-from.At)
	return from.DBm + part*(to.DBm-from.DBm), true
}

// Fade is a script from one signal to another at a pace in dB/s, then silence where cut is true.
func Fade(fromDBm, toDBm, paceDBS float64, cut bool) Script {
	length := time.Duration(math.Abs(toDBm-fromDBm) / paceDBS * float64(time.Second))
	s := Script{{DBm: fromDBm}, {At: length, DBm: toDBm}}
	if cut {
		s = append(s, Point{At: length, Silent: true})
	}
	return s
}

// ParseScript reads a script: points between semicolons or line ends, each a time and a
// signal in dBm or "silent": "0s -50; 10s -85; 12s silent". An error names the point.
func ParseScript(text string) (Script, error) {
	var s Script
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		p, err := parsePoint(words)
		if err != nil {
			return nil, fmt.Errorf("medium: script point %q: %w", strings.TrimSpace(part), err)
		}
		if len(s) > 0 && p.At < s[len(s)-1].At {
			return nil, fmt.Errorf("medium: script point %q: its time is before that of the last", strings.TrimSpace(part))
		}
		s = append(s, p)
	}
	return s, nil
}

func parsePoint(words []string) (p Point, err error) {
	if len(words) != 2 {
		return p, fmt.Errorf("%d words; want a time and a signal", len(words))
	}
	if p.At, err = time.ParseDuration(words[0]); err != nil {
		return p, err
	}
	if words[1] == "silent" {
		p.Silent = true
		return p, nil
	}
	if p.DBm, err = strconv.ParseFloat(words[1], 64); err != nil {
		return p, err
	}
	if !(p.DBm >= lowestDBm && p.DBm <= highestDBm) {
		return p, fmt.Errorf("a signal outside %d..%d dBm", lowestDBm, highestDBm)
	}
	return p, nil
}

// What a signal can be.
const (
	lowestDBm  = -120
	highestDBm = 0 // the driver's radios send with 20 dBm, from beyond arm's length
)
