package medium

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/recording"
)

const second = time.Second

func TestScript(t *testing.T) {
	s, err := ParseScript("1s -50; 11s -90\n12s silent; 20s -60; 20s -70; 30s -70")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at    time.Duration
		want  float64
		heard bool
	}{
		{0, -50, true},
		{1 * second, -50, true},
		{6 * second, -70, true},
		{11 * second, -90, true},
		{11500 * time.Millisecond, -90, true}, // silence has no value to change to
		{12 * second, 0, false},
		{19 * second, 0, false},
		{20 * second, -70, true},
		{25 * second, -70, true},
		{99 * second, -70, true},
	} {
		if got, heard := s.At(c.at); heard != c.heard || (heard && math.Abs(got-c.want) > 1e-9) {
			t.Errorf("at %v: %v, heard %v; want %v, %v", c.at, got, heard, c.want, c.heard)
		}
	}
	if _, heard := (Script{}).At(0); heard {
		t.Error("an empty script is heard")
	}
}

func TestParseScriptRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"0s -50; 1s":      `"1s"`,
		"0 x -50":         `"0 x -50"`,
		"soon -50":        `"soon -50"`,
		"1s loud":         `"1s loud"`,
		"1s 20":           "outside",
		"1s NaN":          "outside",
		"2s -50; 1s -60":  "before that of the last",
		"0s -50;;1s 1 -1": `"1s 1 -1"`,
	} {
		if s, err := ParseScript(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: script %v, error %v; want one with %s", text, s, err, want)
		}
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add("0s -50; 10s -85; 12s silent", int64(second))
	f.Add("-1h -120\n\n;", int64(0))
	f.Fuzz(func(t *testing.T, text string, at int64) {
		s, err := ParseScript(text)
		if err != nil {
			return
		}
		if dBm, heard := s.At(time.Duration(at)); heard && !(dBm >= lowestDBm-1e-6 && dBm <= highestDBm+1e-6) {
			t.Errorf("%v dBm at %v", dBm, time.Duration(at))
		}
	})
}

func TestFade(t *testing.T) {
	s := Fade(-50, -90, 4, true)
	if got, heard := s.At(5 * second); got != -70 || !heard {
		t.Errorf("half way: %v, heard %v", got, heard)
	}
	if _, heard := s.At(10 * second); heard {
		t.Error("heard behind the cut")
	}
	if got, heard := Fade(-90, -50, 4, false).At(time.Hour); got != -50 || !heard {
		t.Errorf("coming near: %v, heard %v", got, heard)
	}
}

func TestPathWithoutShadow(t *testing.T) {
	p := NewPath(PathModel{AtMetreDBm: -40, Exponent: 3, FromM: 1, ToM: 100, SpeedMS: 1.5})
	for at, want := range map[time.Duration]float64{0: -40, 6 * second: -70, time.Hour: -100, -second: -40} {
		if got, heard := p.At(at); !heard || math.Abs(got-want) > 1e-9 {
			t.Errorf("at %v: %v, want %v", at, got, want)
		}
	}
	back := NewPath(PathModel{AtMetreDBm: -40, Exponent: 3, FromM: 100, ToM: 1, SpeedMS: 1.5})
	if got, _ := back.At(time.Hour); got != -40 {
		t.Errorf("walked back: %v", got)
	}
	still := NewPath(PathModel{AtMetreDBm: -40, Exponent: 2, FromM: 10, ToM: 10, ShadowDB: 3})
	first, _ := still.At(0)
	if later, _ := still.At(time.Hour); first != later {
		t.Errorf("standing still: %v, then %v", first, later)
	}
}

// The shadowing has the standard deviation and the correlation over the way that were asked for.
func TestPathShadow(t *testing.T) {
	const deviation, correlation, seeds = 6, 10, 4000
	var sum, squares, product float64
	for seed := range uint64(seeds) {
		p := NewPath(PathModel{FromM: 1, ToM: 50, SpeedMS: 1, ShadowDB: deviation, CorrelationM: correlation, Seed: seed})
		a, b := p.shadowAt(20), p.shadowAt(20+correlation)
		sum, squares, product = sum+a, squares+a*a, product+a*b
	}
	if mean := sum / seeds; math.Abs(mean) > 0.4 {
		t.Errorf("mean %v dB", mean)
	}
	if got := math.Sqrt(squares / seeds); math.Abs(got-deviation) > 0.3 {
		t.Errorf("standard deviation %v dB, want %v", got, deviation)
	}
	if got := product / squares; math.Abs(got-1/math.E) > 0.06 {
		t.Errorf("correlation %v, want 1/e", got)
	}
}

func TestPathIsBounded(t *testing.T) {
	p := NewPath(PathModel{FromM: 1, ToM: 1e12, SpeedMS: 1e6, ShadowDB: 4})
	if len(p.shadow) > maxSteps {
		t.Errorf("%d steps", len(p.shadow))
	}
	rapid.Check(t, func(t *rapid.T) {
		if got, _ := p.At(time.Duration(rapid.Int64().Draw(t, "at"))); math.IsNaN(got) || math.IsInf(got, 0) {
			t.Errorf("signal %v", got)
		}
	})
}

const trace = `t_s,row,poa,rssi_dbm,rsrp_dbm,kind,until_s
0,serving,ap1,-60,,,
2,serving,ap1,-64,,,
2,neighbour,ap2,-80,,,
3,truth,,,,loss,4
3.5,serving,ap1,-90,,,
4,serving,ap1,-70,,,
20,serving,ap1,-66,,,
21,serving,ap2,,-101,,
`

func TestReadTrace(t *testing.T) {
	for poa, want := range map[mihf.PoA]Script{
		"ap1": {
			{At: 0, DBm: -60},
			{At: 2 * second, DBm: -64},
			{At: 3 * second, Silent: true},
			{At: 4 * second, DBm: -70},
			{At: 4*second + 1, Silent: true}, // nothing for 16 s
			{At: 20 * second, DBm: -66},
			{At: 20*second + 1, Silent: true},
		},
		"ap2": {
			{At: 2 * second, DBm: -80},
			{At: 3 * second, Silent: true},
			{At: 21 * second, DBm: -101},
			{At: 21*second + 1, Silent: true},
		},
		"ap3": nil,
	} {
		src, err := recording.Open(strings.NewReader(trace), "wifi-1")
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadTrace(src, poa)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("%s: error %v (-want +got) %s", poa, err, diff)
		}
	}
}

// The shadowing of a Shadow has the deviation and the correlation asked for, begins with none,
// follows its seed, and leaves silence silent.
func TestShadow(t *testing.T) {
	const deviation, correlation = 3.0, time.Second
	s := NewShadow(Steady(-60), deviation, correlation, 4*time.Hour, 7)
	if dBm, heard := s.At(0); dBm != -60 || !heard {
		t.Errorf("at first %v, %v", dBm, heard)
	}
	var n, square, lagged float64
	for at := time.Minute; at < 3*time.Hour; at += correlation {
		a, _ := s.At(at)
		b, _ := s.At(at + correlation)
		n, square, lagged = n+1, square+(a+60)*(a+60), lagged+(a+60)*(b+60)
	}
	if sd := math.Sqrt(square / n); math.Abs(sd-deviation) > 0.2 {
		t.Errorf("deviation %.2f dB, want %v", sd, deviation)
	}
	if r := lagged / square; math.Abs(r-1/math.E) > 0.05 {
		t.Errorf("correlation %.2f after %v, want 1/e", r, correlation)
	}
	again, _ := NewShadow(Steady(-60), deviation, correlation, 4*time.Hour, 7).At(time.Hour)
	other, _ := NewShadow(Steady(-60), deviation, correlation, 4*time.Hour, 8).At(time.Hour)
	if first, _ := s.At(time.Hour); first != again || first == other {
		t.Errorf("%v, with the same seed %v, with another %v", first, again, other)
	}
	if _, heard := NewShadow(Silence{}, deviation, correlation, time.Minute, 7).At(time.Hour); heard {
		t.Error("silence is heard")
	}
}
