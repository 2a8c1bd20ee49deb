package wifi

import (
	"testing"
	"time"

	"mihf.dev/integration/vm/medium"
)

// "Signal read = signal set, within 1 dB and one polling interval, for every dBm from -20 to
// -95 (loss model off)." Here it is the kernel's reading; TestWalk has the daemon's.
func TestSignal(t *testing.T) {
	b := start(t)
	b.Join(station, ap1, medium.Steady(-50))
	b.accessPoint(ap1, 1)
	b.supplicant()
	b.associate()

	worst := time.Duration(0)
	for set := -20; set >= -95; set-- {
		at := time.Now()
		b.Join(station, ap1, medium.Steady(set))
		b.eventually("the signal that was set", func() bool {
			info := b.associated()
			if info == nil {
				t.Fatalf("the association is gone at %d dBm", set)
			}
			return info.Signal == set
		})
		worst = max(worst, time.Since(at))
	}
	// Beacons come every 102 ms; what is more is the emulation's.
	t.Logf("the longest that a reading took: %v", worst)
}
