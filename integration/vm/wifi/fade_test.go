package wifi

import (
	"testing"
	"time"

	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf/clock"
)

// A walk-away with losses by signal and rate: data that comes through gets rare, ends, and
// only then does the kernel know. "The last data frame that the medium delivered, which it
// knows": what the station received is what the medium says, to one in a hundred.
func TestFade(t *testing.T) {
	b := start(t)
	b.Join(station, ap1, medium.Steady(-50))
	b.accessPoint(ap1, 1, network{})
	b.supplicant(network{})
	b.associate()

	got := b.listen(station)
	stop := b.send(station, 20*time.Millisecond)
	b.eventually("data", func() bool { return b.Truth(ap1, station).Data > 20 })
	before := b.Truth(ap1, station)

	b.SetLoss(medium.SNR{})
	begin := clock.Boot().Now()
	b.Join(station, ap1, medium.Fade(-50, -96, 6, true))
	b.eventually("the loss", func() bool { return b.associated() == nil })
	lost := clock.Boot().Now()
	sent := stop()

	truth := b.Truth(ap1, station)
	received := got.end()
	// What the driver took is what is received, but for what the stack above it discards.
	if received.count > truth.Data || received.count < truth.Data-truth.Data/100 {
		t.Errorf("the station received %d frames, the medium says %d", received.count, truth.Data)
	}
	if before.DataLost > 0 || truth.DataLost == 0 || truth.LastData <= begin || truth.LastData >= lost {
		t.Errorf("the medium says %+v, and before the fade %+v", truth, before)
	}
	// The frame is received when the driver has taken it, but for this process being slow.
	if late := received.last.Sub(truth.LastData); late < 0 || late > time.Second {
		t.Errorf("the last frame was received %v after the medium gave it", late)
	}
	t.Logf("of %d frames %d came through, the last %v into the fade at %d dBm; the kernel said so %v later",
		sent, truth.Data, truth.LastData.Sub(begin), truth.SignalDBm, lost.Sub(truth.LastData))
}
