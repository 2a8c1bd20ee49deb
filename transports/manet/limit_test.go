package manet_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/transports/manet"
)

// TestPaperLimits has the rates and gaps of the paper's mobility experiment: 600 octets,
// a quarter of what one, two and three hops carry at 11 Mb/s.
func TestPaperLimits(t *testing.T) {
	for _, tt := range []struct{ thrMax, limit, gapMs float64 }{
		{2265.6e3, 566.4e3, 8.475},
		{1153.2e3, 288.3e3, 16.649},
		{786.4e3, 196.6e3, 24.415},
	} {
		limit := manet.Limit(tt.thrMax, 0.25)
		if math.Abs(limit-tt.limit) > 1e-6 {
			t.Errorf("limit %v bit/s, want %v", limit, tt.limit)
		}
		if gap := manet.Gap(600, limit).Seconds() * 1e3; math.Abs(gap-tt.gapMs) > 0.001 {
			t.Errorf("gap %v ms, want %v", gap, tt.gapMs)
		}
	}
}

func TestLimitOfNonsense(t *testing.T) {
	for _, v := range [][2]float64{{0, 0.5}, {-1, 0.5}, {math.NaN(), 0.5}, {math.Inf(1), 0.5}, {1e6, 0}, {1e6, 1.1}, {1e6, math.NaN()}} {
		if got := manet.Limit(v[0], v[1]); got != 0 {
			t.Errorf("Limit(%v, %v) = %v, want 0", v[0], v[1], got)
		}
	}
	for _, v := range []struct {
		octets int
		bps    float64
		want   time.Duration
	}{{600, 0, 0}, {600, -1, 0}, {0, 1e6, 0}, {1500, 1e-12, math.MaxInt64}, {1500, 1e10, 1200}, {1500, 1e5, 120 * time.Millisecond}} {
		if got := manet.Gap(v.octets, v.bps); got != v.want {
			t.Errorf("Gap(%d, %v) = %v, want %v", v.octets, v.bps, got, v.want)
		}
	}
}

func TestLimitUDP(t *testing.T) {
	if got := manet.LimitUDP(1e6, 4*time.Millisecond, time.Millisecond); got != 1.25e6 {
		t.Errorf("limit %v, want a quarter more", got)
	}
	if got := manet.LimitUDP(1e6, 0, time.Millisecond); got != 1e6 {
		t.Errorf("limit %v without a time in the air, want TCP's", got)
	}
}

func TestRegions(t *testing.T) {
	hears := [][]int{{1}, {0, 2}, {1, 3}, {2}} // a chain of four, and a fifth that nobody hears
	got := manet.Regions(hears, [][]int{{0, 1}, {3}, {4}, {}})
	want := [][]manet.RegionID{{0, 1, 2}, {2, 3}, {4}, nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("regions (-want +got):\n%s", diff)
	}
}
