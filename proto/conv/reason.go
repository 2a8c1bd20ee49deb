package conv

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"mihf.dev/mihf"
)

// ReasonText says in words and numbers why a prediction was made, for example
// "rssi -82.3 dBm, falling 2.4 dB/s, expected below -87 dBm in 1.9 s". The time is the
// median, counted from the event.
func ReasonText(p *mihf.Prediction) string {
	what := "a loss"
	if p.Cause == mihf.CauseHandover {
		what = "a handover"
	}
	when := "in " + short(p.P50.Seconds()) + " s"
	t := &p.Trend
	if *t == (mihf.Trend{}) || !finite(t.Level) || !finite(t.Slope) || !finite(t.Floor) {
		return what + " expected " + when
	}
	head := fmt.Sprintf("%s %s, %s", parameterName(t.Parameter), withUnit(t.Level, t.Parameter.Unit()), motion(t))
	if p.Cause == mihf.CauseHandover {
		return head + ", " + what + " expected " + when
	}
	floor := withUnit(t.Floor, t.Parameter.Unit())
	switch {
	case t.Level < t.Floor && t.Slope < 0:
		return fmt.Sprintf("%s, already below %s, %s expected %s", head, floor, what, when)
	case t.Level > t.Floor && t.Slope > 0:
		return fmt.Sprintf("%s, already above %s, %s expected %s", head, floor, what, when)
	case t.Level < t.Floor:
		return fmt.Sprintf("%s, expected above %s %s", head, floor, when)
	}
	return fmt.Sprintf("%s, expected below %s %s", head, floor, when)
}

// motion says how fast the level changes.
func motion(t *mihf.Trend) string {
	unit := t.Parameter.Unit()
	if unit == "dBm" {
		unit = "dB" // a difference of levels
	}
	word := "falling"
	switch {
	case math.Abs(t.Slope) < 0.05:
		return "steady"
	case t.Slope > 0:
		word = "rising"
	}
	return word + " " + withUnit(math.Abs(t.Slope), unit) + "/s"
}

// parameterName is the name without its unit.
func parameterName(p mihf.Parameter) string {
	name := p.String()
	for _, unit := range []string{"_dbm", "_db", "_percent", "_bps", "_s"} {
		name = strings.TrimSuffix(name, unit)
	}
	return strings.ReplaceAll(name, "_", " ")
}

func withUnit(v float64, unit string) string {
	if unit == "" {
		return short(v)
	}
	return short(v) + " " + unit
}

// short shows one decimal place, or none where it would be 0.
func short(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}
