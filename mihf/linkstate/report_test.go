package linkstate_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/linkstate"
)

func below(v float64) mihf.ThresholdConfig {
	return mihf.ThresholdConfig{
		Parameter: mihf.ParamRSSI, Threshold: mihf.Some(mihf.Threshold{Value: v, Direction: mihf.ThresholdBelow}),
	}
}

var someone = mihf.Caller{UID: mihf.Some(uint32(1000))}.Identity()

func above(v float64) mihf.ThresholdConfig {
	c := below(v)
	c.Threshold = mihf.Some(mihf.Threshold{Value: v, Direction: mihf.ThresholdAbove})
	return c
}

func (h *machineTest) configure(items ...mihf.ThresholdConfig) {
	h.t.Helper()
	if err := h.m.Configure(h.now, someone, items); err != nil {
		h.t.Fatal(err)
	}
}

// crossings gives the readings a second apart and returns at which there was a crossing.
func (h *machineTest) crossings(values ...float64) (at []int) {
	for i, v := range values {
		h.give(radio("", v))
		for j := range h.got {
			if h.got[j].Kind == mihf.LinkParametersReport && h.got[j].Report.Threshold.Known() {
				at = append(at, i)
			}
		}
		h.drop()
		h.advance(time.Second)
		h.drop()
	}
	return at
}

// "A threshold reports once for each crossing: it is armed again only when the value has
// come back by the hysteresis."
func TestThresholdHysteresis(t *testing.T) {
	for _, c := range []struct {
		item   mihf.ThresholdConfig
		values []float64
		want   string
	}{
		{below(-70), []float64{-65, -71, -72, -90, -71, -71, -71, -71, -71, -71}, "[1]"},
		{below(-70), []float64{-71, -69, -71, -68, -71}, "[0 4]"},
		{below(-70), []float64{-70, -70.1}, "[1]"},
		{above(-70), []float64{-80, -70, -69, -60, -71, -69, -72, -69}, "[2 7]"},
		{mihf.ThresholdConfig{Parameter: mihf.ParamRSSI, Hysteresis: 10, Threshold: below(-70).Threshold}, []float64{-71, -65, -71, -60, -71}, "[0 4]"},
		{mihf.ThresholdConfig{Parameter: mihf.ParamRSSI, Action: mihf.ThresholdOneShot, Threshold: below(-70).Threshold}, []float64{-60, -71, -60, -71}, "[1]"},
	} {
		h := onWiFi(t)
		h.configure(c.item)
		if got := fmt.Sprint(h.crossings(c.values...)); got != c.want {
			t.Errorf("%+v over %v: crossings at %v, want %v", c.item, c.values, got, c.want)
		}
	}
}

// A crossing is a report like any other: the next one names its value as the previous, and
// comes no sooner than ReportEvery after it.
func TestCrossingIsReported(t *testing.T) {
	h := onWiFi(t)
	h.configure(below(-70))
	h.give(radio("", -65))
	h.drop()
	h.give(radio("", -72))
	h.drop()
	h.advance(h.cfg.ReportEvery / 2)
	h.give(radio("", -75))
	h.want()
	h.advance(h.cfg.ReportEvery / 2)
	if len(h.got) != 1 || h.got[0].Report.Previous != mihf.Some(-72.0) || h.got[0].Report.Value != -75 {
		t.Errorf("%+v, want -75 after -72", h.got)
	}
	h.drop()
}

// The comparison is signed, over the whole range.
func TestThresholdIsSigned(t *testing.T) {
	for v := -100.0; v <= -10; v++ {
		h := onWiFi(t)
		h.configure(below(-70), above(-70))
		n := len(h.crossings(v))
		if want := map[bool]int{true: 1, false: 0}[v != -70]; n != want {
			t.Errorf("%v dBm crossed %d thresholds at -70", v, n)
		}
	}
}

// "An unknown value crosses nothing", and does not keep others from being looked at.
func TestThresholdOfUnknownParameter(t *testing.T) {
	h := onWiFi(t)
	h.configure(mihf.ThresholdConfig{Parameter: mihf.ParamSINR, Threshold: mihf.Some(mihf.Threshold{Value: 0, Direction: mihf.ThresholdBelow}), Period: time.Second}, below(-70))
	h.give(reading(mihf.ParamTxRetryRatio, 0.5))
	h.drop()
	if got := h.crossings(-71); len(got) != 1 {
		t.Errorf("crossings %v", got)
	}
	h.advance(10 * time.Second)
	h.want() // no period of what is not known
}

// Bad items are refused, and then nothing is changed.
func TestConfigureAllOrNone(t *testing.T) {
	th := below(-70).Threshold
	for _, c := range []struct {
		item mihf.ThresholdConfig
		want error
	}{
		{mihf.ThresholdConfig{Parameter: 200, Threshold: th}, mihf.ErrInvalid},
		{mihf.ThresholdConfig{Parameter: mihf.ParamRSSI, Action: 7, Threshold: th}, mihf.ErrInvalid},
		{mihf.ThresholdConfig{Parameter: mihf.ParamRSSI}, mihf.ErrInvalid},
		{below(65465), mihf.ErrInvalid}, // -71 as an unsigned number
		{below(math.NaN()), mihf.ErrInvalid},
		{mihf.ThresholdConfig{Parameter: mihf.ParamRSSI, Threshold: mihf.Some(mihf.Threshold{Value: -70, Direction: 2})}, mihf.ErrInvalid},
		{mihf.ThresholdConfig{Parameter: mihf.ParamRSSI, Period: time.Millisecond}, mihf.ErrInvalid},
		{mihf.ThresholdConfig{Parameter: mihf.ParamRSSI, Period: -time.Second}, mihf.ErrInvalid},
		{mihf.ThresholdConfig{Parameter: mihf.ParamRSSI, Threshold: th, Hysteresis: -1}, mihf.ErrInvalid},
		{mihf.ThresholdConfig{Parameter: mihf.ParamRSSI, Threshold: th, Hysteresis: math.Inf(1)}, mihf.ErrInvalid},
		{mihf.ThresholdConfig{Parameter: mihf.ParamRSSI, Action: mihf.ThresholdOneShot, Period: time.Second}, mihf.ErrInvalid},
		{mihf.ThresholdConfig{Parameter: mihf.ParamRSRP, Period: time.Second}, mihf.ErrInvalid}, // of a modem
	} {
		h := onWiFi(t)
		if err := h.m.Configure(h.now, someone, []mihf.ThresholdConfig{below(-60), c.item}); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c.item, err)
		}
		if got := h.crossings(-90); len(got) != 0 {
			t.Errorf("%+v: the item before it was taken", c.item)
		}
	}
}

// A link that cannot give a parameter refuses to report it, until it is given all the same;
// one that only has not given it yet takes the threshold.
func TestConfigureWhatCannotCome(t *testing.T) {
	h := onWiFi(t)
	rsrp := mihf.ThresholdConfig{Parameter: mihf.ParamRSRP, Period: time.Second}
	if err := h.m.Configure(h.now, someone, []mihf.ThresholdConfig{rsrp}); !errors.Is(err, mihf.ErrInvalid) || !strings.Contains(err.Error(), "wifi-00000001 is of type wifi, which has no rsrp_dbm") {
		t.Errorf("%v, want it refused", err)
	}
	cancel := rsrp
	cancel.Action = mihf.ThresholdCancel
	h.configure(cancel)
	h.configure(mihf.ThresholdConfig{Parameter: mihf.ParamBeaconLoss, Period: time.Second})
	o := &mihf.Observation{Kind: mihf.ObsRadio}
	o.Values.Set(mihf.ParamRSRP, -100)
	o.At, o.Link = h.now, wlan
	h.m.Observe(h.now, o, &linkstate.Events{})
	h.configure(rsrp)
}

// "Nobody can take all thresholds of a link": a caller has its share, an item counts for who
// set it last, and a link's are bounded all the same.
func TestThresholdShares(t *testing.T) {
	h := onWiFi(t)
	each := linkstate.Defaults().MaxThresholdsPerUser
	set := func(uid uint32, from, n int) error {
		var items []mihf.ThresholdConfig
		for i := range n {
			items = append(items, below(-11-float64(from+i)/100))
		}
		return h.m.Configure(h.now, mihf.Caller{UID: mihf.Some(uid)}.Identity(), items)
	}
	limited := func(err error, why string) {
		t.Helper()
		if !errors.Is(err, mihf.ErrLimit) || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want the limit %q", err, why)
		}
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	own := fmt.Sprintf("uid 1 has set %d on the link; see [link] max_thresholds_per_user", each)
	limited(set(1, 0, each+1), own)
	ok(set(1, 0, each)) // none of the refused ones is there
	limited(set(1, each, 1), own)
	ok(set(1, each-1, 1)) // in the place of its own
	ok(set(2, 0, 1))      // in the place of another's
	ok(set(1, each, 1))
	limited(set(1, each+1, 1), own)
	users := linkstate.MaxThresholds / each
	for uid := range users - 1 {
		n := each
		if uid == 0 {
			n = each - 1 // besides the one that was taken over
		}
		ok(set(uint32(uid+2), 100*(uid+1), n))
	}
	limited(set(99, 900, 1), "at most 128 on a link")
}

func TestCancel(t *testing.T) {
	periodic := mihf.ThresholdConfig{Parameter: mihf.ParamRSSI, Period: time.Second}
	cancel := func(c mihf.ThresholdConfig) mihf.ThresholdConfig {
		c.Action = mihf.ThresholdCancel
		return c
	}
	count := func(h *machineTest) (crossed, periods int) {
		h.give(radio("", -90))
		h.advance(1500 * time.Millisecond)
		for i := range h.got {
			switch r := &h.got[i].Report; {
			case r.Periodic:
				periods++
			case r.Threshold.Known():
				crossed++
			}
		}
		h.drop()
		return crossed, periods
	}
	for _, c := range []struct {
		name             string
		items            []mihf.ThresholdConfig
		crossed, periods int
	}{
		{"nothing", nil, 2, 1},
		{"one threshold", []mihf.ThresholdConfig{cancel(below(-60))}, 1, 1},
		{"the period", []mihf.ThresholdConfig{cancel(periodic)}, 2, 0},
		{"all of the parameter", []mihf.ThresholdConfig{cancel(mihf.ThresholdConfig{Parameter: mihf.ParamRSSI})}, 0, 0},
		{"another parameter", []mihf.ThresholdConfig{cancel(mihf.ThresholdConfig{Parameter: mihf.ParamSINR})}, 2, 1},
		{"set again", []mihf.ThresholdConfig{below(-60), below(-70), periodic}, 2, 1},
	} {
		h := onWiFi(t)
		h.configure(below(-60), below(-70), periodic)
		h.configure(c.items...)
		if crossed, periods := count(h); crossed != c.crossed || periods != c.periods {
			t.Errorf("%s: %d crossings, %d periods", c.name, crossed, periods)
		}
	}
}

// A changed value is reported at most every ReportEvery, and then the newest.
func TestReportPacing(t *testing.T) {
	h := onWiFi(t)
	h.give(radio("", -60))
	h.want("link_parameters_report rssi_dbm -60")
	h.give(radio("", -61))
	h.give(radio("", -62))
	h.want()
	h.advance(100 * time.Millisecond)
	h.want("link_parameters_report rssi_dbm -62")
	h.give(radio("", -63))
	h.give(radio("", -62)) // back before it was reported: nothing differs
	h.advance(time.Second)
	h.want()
	// A crossing does not wait.
	h.configure(below(-65))
	h.give(radio("", -64))
	h.want("link_parameters_report rssi_dbm -64")
	h.give(radio("", -66))
	h.want("link_parameters_report rssi_dbm -66 below -65")
	h.advance(time.Second)
}

func TestPeriodicReports(t *testing.T) {
	h := onWiFi(t)
	h.configure(mihf.ThresholdConfig{Parameter: mihf.ParamRSSI, Period: time.Second})
	h.give(radio("", -60))
	h.drop()
	h.advance(3500 * time.Millisecond)
	h.want("link_parameters_report rssi_dbm -60 periodic", "link_parameters_report rssi_dbm -60 periodic", "link_parameters_report rssi_dbm -60 periodic")
	// Periods that were missed (a suspend) are not made up for.
	h.now = h.now.Add(8*time.Hour + 100*time.Millisecond)
	h.m.Advance(h.now, &h.ev)
	h.take()
	h.want("link_parameters_report rssi_dbm -60 periodic")
	if next := h.m.Next(); next <= h.now || next > h.now.Add(time.Second) {
		t.Errorf("next at %v, now %v", next, h.now)
	}
}

// Older readings do not replace newer ones, and none is from the future.
func TestOldReadings(t *testing.T) {
	h := onWiFi(t)
	h.advance(time.Second)
	h.give(radio("", -60))
	old := radio("", -90)
	old.Age = time.Millisecond
	h.give(old)
	h.advance(time.Second)
	h.want("link_parameters_report rssi_dbm -60")
	ahead := radio("", -70)
	ahead.At = h.now.Add(time.Hour)
	h.give(ahead)
	if e := h.got[0]; e.At != h.now {
		t.Errorf("reported of %v at %v", e.At, h.now)
	}
	h.drop()
	h.advance(time.Second)
	h.give(radio("", -71))
	h.want("link_parameters_report rssi_dbm -71")
}

// What was read of an attachment that is lost is not known of the link any more.
func TestValuesEndWithTheAttachment(t *testing.T) {
	h := onWiFi(t)
	h.configure(mihf.ThresholdConfig{Parameter: mihf.ParamRSSI, Period: time.Second})
	h.give(radio("", -60))
	h.give(radio("", -61))
	h.drop()
	h.give(device{v4: true, down: true, admin: true}.facts())
	h.advance(10 * time.Second)
	h.want("path_lost v4 link_down", "link_down admin withheld 0s")
	if v, _ := h.m.Values(); v.Len() != 0 {
		t.Errorf("%v", v)
	}
	late := radio("", -60)
	late.Age = time.Minute
	h.give(late)
	h.want()
}

// The twin of the hysteresis: a reference that is dumb, over random walks.
func TestThresholdAgainstTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		level := float64(rapid.IntRange(-90, -40).Draw(rt, "level"))
		hysteresis := float64(rapid.IntRange(1, 10).Draw(rt, "hysteresis"))
		isAbove := rapid.Bool().Draw(rt, "above")
		item := below(level)
		if isAbove {
			item = above(level)
		}
		item.Hysteresis = hysteresis
		h := &machineTest{t: t, cfg: linkstate.Defaults(), ids: &linkstate.IDs{Boot: 7}, now: mihf.Time(time.Hour)}
		h.m = linkstate.New(h.cfg, wlan, h.ids)
		h.configure(item)
		values := rapid.SliceOfN(rapid.Map(rapid.IntRange(-100, -30), func(i int) float64 { return float64(i) }), 1, 60).Draw(rt, "values")
		var want []int
		armed := true
		for i, v := range values {
			d := v - level // how far beyond
			if !isAbove {
				d = -d
			}
			switch {
			case armed && d > 0:
				armed = false
				want = append(want, i)
			case !armed && d <= -hysteresis:
				armed = true
			}
		}
		if got := h.crossings(values...); fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("%+v over %v: %v, want %v", item, values, got, want)
		}
	})
}
