package wifi

import (
	"testing"
	"time"

	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf"
)

// "Signal read = signal set, within 1 dB and one polling interval, for every dBm from -20 to
// -95 (loss model off)", by the daemon over each front: the far interval is 1 s, the near one
// 100 ms, and beacons come every 102 ms.
func TestSignal(t *testing.T) {
	d := start(t).daemon()
	d.attach(-50, network{})
	worst := make([]time.Duration, len(d.fronts))
	for set := -20; set >= -95; set-- {
		d.Join(station, ap1, medium.Steady(set))
		begin := time.Now()
		for i, w := range d.fronts {
			d.eventually("the signal that was set", func() bool {
				s, err := w.client.Parameters(t.Context(), d.link)
				if err != nil {
					t.Fatal(err)
				}
				rssi, known := s.Values.Get(mihf.ParamRSSI)
				return known && rssi == float64(set)
			})
			took := time.Since(begin)
			worst[i] = max(worst[i], took)
			const interval, beacon, slack = time.Second, 103 * time.Millisecond, 150 * time.Millisecond
			if took > interval+beacon+slack {
				t.Errorf("%s: %d dBm was read after %v", w.name, set, took)
			}
		}
	}
	t.Logf("the longest that a reading took: %v", worst)
	d.never(mihf.LinkDown)
}
