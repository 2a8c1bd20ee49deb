package modem

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"mihf.dev/mihf"
	"mihf.dev/sensors/sensorstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const imei = "490154203237518"

// own is the link of the modem with that IMEI where it has no network interface.
var own = mihf.NewLinkID(mihf.LinkWWAN, "modem/"+imei)

// wwan0 is the link that the sensor of links gives the network interface.
const wwan0 = mihf.LinkID("wwan-00000007")

// bed is a sensor at a fake ModemManager, in a bubble of its own.
type bed struct {
	*testing.T
	*manager
	sensor *Sensor
	rec    *sensorstest.Recorder
	names  map[mihf.LinkID]string
}

// inBubble runs f with a sensor that has taken its first look.
func inBubble(t *testing.T, mm *manager, set func(*Options), f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour) // so that there is a time before
		b := &bed{T: t, manager: mm, sensor: mm.sensor(set), names: map[mihf.LinkID]string{own: "own", wwan0: "wwan0"}}
		b.rec = sensorstest.Start(t, b.sensor)
		time.Sleep(100 * time.Millisecond)
		f(b)
		b.rec.Stop(t)
	})
}

// all returns what was emitted since the last call; samples only where asked for.
func (b *bed) all(samples bool) (out []string) {
	b.Helper()
	synctest.Wait()
	for _, o := range b.rec.Drain() {
		if bad := sensorstest.Check(Name, &o); bad != "" {
			b.Errorf("%s: %s", bad, sensorstest.Format([]mihf.Observation{o}))
		}
		if o.Kind == mihf.ObsRadio && !samples {
			continue
		}
		s := show(&o)
		if o.Link != "" {
			name := b.names[o.Link]
			if name == "" {
				name = string(o.Link)
			}
			s = name + " " + s
		}
		out = append(out, s)
	}
	return out
}

func show(o *mihf.Observation) string {
	switch o.Kind {
	case mihf.ObsAssociation:
		a := o.Association
		s := strings.TrimSpace(fmt.Sprintf("%v %s", a.State, a.PoA))
		if a.State <= mihf.AssociationDisconnected {
			s += fmt.Sprintf(" %v/%d", a.Cause, a.Code)
		}
		return s
	case mihf.ObsRadio:
		s := "radio"
		o.Values.All(func(p mihf.Parameter, v float64) bool {
			s += fmt.Sprintf(" %v=%v", p, v)
			return true
		})
		return s
	case mihf.ObsLinkGone:
		return "gone " + o.Gone.String()
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
	if d := cmp.Diff(want, b.all(false)); d != "" {
		b.Errorf("(-want +got)\n%s", d)
	}
}

// wantSamples compares the samples of the time that passes now, the links' names aside.
func (b *bed) wantSamples(d time.Duration, want ...string) {
	b.Helper()
	time.Sleep(d)
	var got []string
	for _, s := range b.all(true) {
		if _, sample, ok := strings.Cut(s, " radio "); ok {
			got = append(got, sample)
		} else {
			b.Errorf("beside samples: %s", s)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		b.Errorf("(-want +got)\n%s", d)
	}
}

// settle lets what is under way end.
func (b *bed) settle() {
	time.Sleep(200 * time.Millisecond)
	synctest.Wait()
}

// counter returns one of the sensor's counters.
func (b *bed) counter(name string) uint64 {
	b.Helper()
	for _, c := range b.sensor.Counters() {
		if c.Name == name {
			return c.Value
		}
	}
	b.Fatalf("no counter %s", name)
	return 0
}
