package nl80211

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
	"mihf.dev/sensors/sensorstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a sensor at a fake kernel, in a bubble of its own.
type bed struct {
	*testing.T
	kernel *fake
	wlan   *rawIface
	sensor *Sensor
	rec    *sensorstest.Recorder
	clock  clock.Clock
}

func inBubble(t *testing.T, wlan *rawIface, set func(f *fake, o *Options), f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour) // so that there is a time before
		b := &bed{T: t, wlan: wlan, kernel: newFake(wlan)}
		o := b.kernel.options()
		if set != nil {
			set(b.kernel, &o)
		}
		b.clock = o.Clock
		b.sensor = b.kernel.sensor(o)
		b.rec = sensorstest.Start(t, b.sensor)
		synctest.Wait()
		f(b)
		b.rec.Stop(t)
	})
}

func (b *bed) now() mihf.Time { return b.clock.Now() }

// seen returns what was emitted since the last call, as text; samples only where asked for.
func (b *bed) seen(samples bool) []string {
	b.Helper()
	synctest.Wait()
	var out []string
	for _, o := range b.rec.Drain() {
		if bad := sensorstest.Check(Name, &o); bad != "" {
			b.Errorf("%s: %s", bad, sensorstest.Format([]mihf.Observation{o}))
		}
		if o.Kind != mihf.ObsRadio || samples {
			out = append(out, show(&o))
		}
	}
	return out
}

func show(o *mihf.Observation) string {
	switch o.Kind {
	case mihf.ObsAssociation:
		a := o.Association
		s := fmt.Sprintf("%v %s %s", a.State, a.PoA, mihf.Escape(a.SSID))
		if a.State == mihf.AssociationDisconnected {
			s += fmt.Sprintf(" %v %d local=%v", a.Cause, a.Code, a.Local)
		}
		return s
	case mihf.ObsRadio:
		s := fmt.Sprintf("radio %s", o.PoA)
		o.Values.All(func(p mihf.Parameter, v float64) bool {
			s += fmt.Sprintf(" %v=%v", p, v)
			return true
		})
		if o.Age != 0 {
			s += fmt.Sprintf(" age=%v", o.Age)
		}
		return s
	case mihf.ObsDetected:
		rssi, _ := o.Detected.Values.Get(mihf.ParamRSSI)
		return fmt.Sprintf("detected %s %q %v age=%v", o.Detected.PoA, o.Detected.SSID, rssi, o.Age)
	case mihf.ObsScan:
		return fmt.Sprintf("scanning %v", o.Scanning)
	case mihf.ObsCondition:
		return strings.TrimSpace(fmt.Sprintf("%v %s", o.Condition.Condition, o.Condition.Text))
	case mihf.ObsResync:
		return fmt.Sprintf("resync lost=%v", o.Lost)
	default:
		return o.Kind.String()
	}
}

// want compares what was emitted since the last call, samples aside.
func (b *bed) want(want ...string) {
	b.Helper()
	if d := cmp.Diff(want, b.seen(false)); d != "" && (len(want) > 0 || b.Failed() || d != "") {
		b.Errorf("(-want +got)\n%s", d)
	}
}

// samples waits and returns the readings of the radio in that time.
func (b *bed) samples(d time.Duration) (list []mihf.Observation) {
	time.Sleep(d)
	synctest.Wait()
	for _, o := range b.rec.Drain() {
		if o.Kind == mihf.ObsRadio {
			list = append(list, o)
		}
	}
	return list
}

func (b *bed) set(stations ...rawStation) { b.kernel.change(func() { b.wlan.stations = stations }) }

// attached1 is a station that is attached to the first access point.
func attached1(ssid string, dbm int) *rawIface {
	i := station0()
	i.ssid = ssid
	i.stations = []rawStation{attached(ap1, dbm)}
	return i
}

func (b *bed) send(cmd uint8) { b.kernel.send(cmd, on0) }

func (b *bed) connect(status uint16) {
	b.kernel.send(unix.NL80211_CMD_CONNECT, func(ae *netlink.AttributeEncoder) {
		on0(ae)
		ae.Uint16(unix.NL80211_ATTR_STATUS_CODE, status)
	})
}

// to sets the kernel's state and says it with a message.
func (b *bed) to(ssid string, cmd uint8, stations ...rawStation) {
	b.kernel.change(func() { b.wlan.ssid, b.wlan.stations = ssid, stations })
	b.send(cmd)
	time.Sleep(10 * time.Millisecond)
}
