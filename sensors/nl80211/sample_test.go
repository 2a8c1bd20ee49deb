package nl80211

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

func newSampler() *sampler { return &sampler{cfg: &config{count: new(counters)}} }

func value(t *testing.T, vs *mihf.Values, p mihf.Parameter) any {
	t.Helper()
	if v, ok := vs.Get(p); ok {
		return v
	}
	return nil
}

func counted(packets, retries, failed, lost uint32) *stationInfo {
	return &stationInfo{
		mac: ap1, signal: mihf.Some(int8(-50)), txPackets: mihf.Some(packets), txRetries: mihf.Some(retries),
		txFailed: mihf.Some(failed), beaconLoss: mihf.Some(lost),
	}
}

func TestShares(t *testing.T) {
	const none = math.MaxUint32
	p := newSampler()
	for i, x := range []struct {
		s                  *stationInfo
		retry, fail, lossB any
	}{
		{counted(1000, 500, 100, 3), nil, nil, nil}, // nothing is known of the time before
		{counted(1090, 510, 109, 3), 0.1, 0.1, 0.0},
		{counted(1090, 510, 109, 4), nil, nil, 1.0}, // nothing was sent: no share
		{counted(1090, 515, 114, 4), 1.0, 1.0, 0.0}, // only what was sent before
		{counted(5, 1, 0, 0), nil, nil, nil},        // counters that began anew
		{counted(15, 1, 0, 0), 0.0, 0.0, 0.0},
		{&stationInfo{mac: ap2, txPackets: mihf.Some(uint32(20))}, nil, nil, nil}, // another peer
	} {
		vs := p.take(mihf.Time(i+1), x.s, bssInfo{})
		for q, want := range map[mihf.Parameter]any{
			mihf.ParamTxRetryRatio: x.retry, mihf.ParamTxFailRatio: x.fail, mihf.ParamBeaconLoss: x.lossB,
		} {
			if got := value(t, &vs, q); got != want {
				t.Errorf("%d: %v is %v, want %v", i, q, got, want)
			}
		}
	}
	t.Log("# a counter that wraps goes on")
	p = newSampler()
	p.take(1, counted(none-4, none, 0, 0), bssInfo{})
	vs := p.take(2, counted(5, 0, 0, 0), bssInfo{})
	if got := value(t, &vs, mihf.ParamTxRetryRatio); got != 1.0/11 {
		t.Errorf("after the wrap: %v", got)
	}
	t.Log("# a driver that only reports losses")
	p.beaconLost()
	vs = p.take(3, &stationInfo{mac: ap1}, bssInfo{})
	if got := value(t, &vs, mihf.ParamBeaconLoss); got != 1.0 {
		t.Errorf("beacon loss %v", got)
	}
}

// Shares are shares, whatever a driver counts.
func TestSharesProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newSampler()
		for i := range rapid.IntRange(1, 8).Draw(rt, "n") {
			word := rapid.Uint32()
			s := counted(word.Draw(rt, "packets"), word.Draw(rt, "retries"), word.Draw(rt, "failed"), word.Draw(rt, "lost"))
			vs := p.take(mihf.Time(i+1), s, bssInfo{})
			vs.All(func(q mihf.Parameter, v float64) bool {
				if err := q.Check(v); err != nil {
					rt.Error(err)
				}
				return true
			})
		}
	})
}

// W15: the best leg of a multi-link association counts, and what the driver says of the
// whole only where there are no legs.
func TestLegs(t *testing.T) {
	p := newSampler()
	leg := func(dbm int8) stationInfo { return stationInfo{signal: mihf.Some(dbm)} }
	vs := p.take(1, &stationInfo{mac: ap1, signal: mihf.Some(int8(0)), legs: []stationInfo{leg(-90), leg(-60), {}, leg(0)}}, bssInfo{})
	if got := value(t, &vs, mihf.ParamRSSI); got != -60.0 {
		t.Errorf("best leg %v", got)
	}
	t.Log("# legs known from scan results only: another series, each time it was heard once")
	serving := bssInfo{bssid: ap2, mld: ap1, associated: true, signal: mihf.Some(int32(-7000)), seen: mihf.Some(uint64(5))}
	for i, want := range []any{-70.0, nil} {
		vs = p.take(mihf.Time(10+i), &stationInfo{mac: ap1, signal: mihf.Some(int8(0))}, serving)
		if got := value(t, &vs, mihf.ParamBeaconSignal); got != want || vs.Has(mihf.ParamRSSI) {
			t.Errorf("from scan results %v, want %v", got, want)
		}
	}
}

// W22: one parameter is one attribute, also where the driver gives it now and then only.
func TestSeries(t *testing.T) {
	p := newSampler()
	for i, s := range []stationInfo{
		{mac: ap1, signal: mihf.Some(int8(-50))},
		{mac: ap1, average: mihf.Some(int8(-55))},
		{mac: ap1, beacons: mihf.Some(int8(-58))},
	} {
		vs := p.take(mihf.Time(i+1), &s, bssInfo{})
		if vs.Len() != 1 || !vs.Has([]mihf.Parameter{mihf.ParamRSSI, mihf.ParamRSSIAverage, mihf.ParamBeaconSignal}[i]) {
			t.Errorf("%d: %+v", i, vs)
		}
	}
}

// W02 and W21.
func TestComplaint(t *testing.T) {
	p := newSampler()
	now := mihf.Time(time.Hour)
	step := func(dbm int8, rx uint32, want string) {
		t.Helper()
		now = now.Add(time.Second)
		p.take(now, &stationInfo{mac: ap1, signal: mihf.Some(dbm), rxPackets: mihf.Some(rx)}, bssInfo{})
		if got := p.complaint(); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("at %v: %q, want %q", now, got, want)
		}
	}
	for range mutePolls - 1 {
		step(0, 0, "")
	}
	step(0, 0, "no signal")
	step(-60, 0, "")
	for i := range uint32(59) {
		step(-60, 10*i, "")
	}
	step(-60, 1000, "not moved for a minute")
	step(-61, 1001, "")
	for range 120 { // nothing arrives: no wonder
		step(-61, 1001, "")
	}
}

func TestBusyMeter(t *testing.T) {
	var m busyMeter
	take := func(now time.Duration, active, busy mihf.Opt[uint64], want any) {
		t.Helper()
		m.take(mihf.Time(now), surveyInfo{active: active, busy: busy})
		var got any
		if v, ok := m.get(mihf.Time(now)); ok {
			got = v
		}
		if got != want {
			t.Errorf("at %v: %v, want %v", now, got, want)
		}
		if _, ok := m.get(mihf.Time(now)); ok {
			t.Error("taken twice")
		}
	}
	some := mihf.Some[uint64]
	take(1, some(1000), some(100), nil)
	take(2, some(2000), some(350), 0.25)
	take(3, some(2000), some(350), nil) // no time passed for the driver
	take(4, some(100), some(10), nil)   // it began anew
	take(5, some(200), some(900), 1.0)  // it cannot count
	take(6, some(300), mihf.Opt[uint64]{}, nil)
}

// The survey is asked for now and then; its share goes with the next sample. A driver
// that has none is not asked again.
func TestSurvey(t *testing.T) {
	wlan := attached1("home", -50)
	wlan.survey = [][2]uint64{{1000, 100}, {2000, 600}}
	inBubble(t, wlan, nil, func(b *bed) {
		b.want("starting", "authorised "+ap1+" home", "ok")
		n := 0
		for _, o := range b.samples(8 * time.Second) {
			if v, ok := o.Values.Get(mihf.ParamChannelBusy); ok {
				n++
				if v != 0.5 {
					b.Errorf("busy %v", v)
				}
			}
		}
		if n != 1 {
			b.Errorf("%d samples with the share", n)
		}
		b.kernel.change(func() { b.kernel.fail[unix.NL80211_CMD_GET_SURVEY] = unix.EOPNOTSUPP })
		before := b.kernel.count(unix.NL80211_CMD_GET_SURVEY)
		time.Sleep(time.Minute)
		if n := b.kernel.count(unix.NL80211_CMD_GET_SURVEY) - before; n != 1 {
			b.Errorf("asked %d times more", n)
		}
		b.want()
	})
}

// Samples in a bubble carry all that the driver gives, and are of the attachment.
func TestSample(t *testing.T) {
	wlan := station0()
	s := full()
	info := s.info
	s.info = func(ae *netlink.AttributeEncoder) { info(ae); staFlags(ae, flagAssociated|flagAuthorised) }
	wlan.stations = []rawStation{s}
	inBubble(t, wlan, nil, func(b *bed) {
		b.samples(0)
		list := b.samples(150 * time.Millisecond)
		if len(list) == 0 {
			b.Fatal("no sample")
		}
		const want = "radio " + ap1 + " rssi_dbm=-71 rssi_average_dbm=-70 beacon_signal_dbm=-69 tx_phy_rate_bps=7e+09 rx_phy_rate_bps=5.4e+07" +
			" beacon_loss=0 inactive_s=0.12 expected_throughput_bps=3e+07"
		if got := show(&list[0]); got != want {
			b.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
