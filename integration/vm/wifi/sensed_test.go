package wifi

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/engine"
	"mihf.dev/predictors/level"
	"mihf.dev/sensors"
	"mihf.dev/sensors/nl80211"
	"mihf.dev/sensors/rtnl"
)

// sensed is a broker with the sensors that the daemon has for Wi-Fi, and what it said of the
// station's link.
type sensed struct {
	*bed
	mu   sync.Mutex // guards all following fields
	link mihf.LinkID
	seen []mihf.Event
	ends []mihf.Observation // disconnections, as the sensor had them
	rssi map[float64]mihf.Time
}

// sense starts the sensors and a broker, until the test ends.
func (b *bed) sense() *sensed {
	b.t.Helper()
	s := &sensed{bed: b, rssi: make(map[float64]mihf.Time)}
	cfg := broker.Config{Engine: engine.Defaults()}
	cfg.Engine.Boot = 1
	cfg.Engine.NewPredictor = func(mihf.LinkID) engine.Predictor { return level.New() }
	br := broker.New(cfg)
	links := rtnl.New(rtnl.Options{})
	radio := nl80211.New(nl80211.Options{Link: links.Link})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = br.Run(ctx) })
	for _, one := range []sensors.Sensor{links, radio} {
		running.Go(func() {
			_ = one.Run(ctx, func(o *mihf.Observation) {
				s.observe(o)
				br.Observe(o)
			})
		})
	}
	b.t.Cleanup(func() {
		cancel()
		running.Wait()
		for _, c := range radio.Counters() {
			if strings.Contains(c.Name, "malformed") && c.Value > 0 {
				b.t.Errorf("%s %d", c.Name, c.Value)
			}
		}
		if b.t.Failed() {
			s.log()
		}
	})
	if _, err := br.Handle(ctx, mihf.Caller{}, mihf.SubscribeRequest{}, s.deliver); err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (s *sensed) observe(o *mihf.Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.Kind == mihf.ObsLink && o.Facts.Name == ifname(station) {
		s.link = o.Link
	}
	if o.Link != s.link {
		return
	}
	if o.Kind == mihf.ObsAssociation && o.Association.State == mihf.AssociationDisconnected {
		s.ends = append(s.ends, *o)
	}
	if v, ok := o.Values.Get(mihf.ParamRSSI); ok && o.Kind == mihf.ObsRadio {
		s.rssi[v] = o.At
	}
}

func (s *sensed) deliver(d *mihf.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.Kind == mihf.DeliverEvent && d.Event.Link == s.link && s.link != "" {
		s.seen = append(s.seen, d.Event)
	}
}

// of returns the events of a kind that came so far.
func (s *sensed) of(k mihf.Kind) (list []mihf.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.seen {
		if e.Kind == k {
			list = append(list, e)
		}
	}
	return list
}

// await waits for the first event of a kind.
func (s *sensed) await(k mihf.Kind) mihf.Event {
	s.t.Helper()
	s.eventually(k.String(), func() bool { return len(s.of(k)) > 0 })
	return s.of(k)[0]
}

// never fails if there was an event of the kind.
func (s *sensed) never(k mihf.Kind) {
	s.t.Helper()
	if list := s.of(k); len(list) > 0 {
		s.t.Errorf("%v: %+v", k, list[0])
	}
}

func (s *sensed) log() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.seen {
		if e.Kind != mihf.LinkParametersReport {
			s.t.Logf("%v %v", e.At, e.Kind)
		}
	}
}

// address is the BSSID of an access point's radio.
func (s *sensed) address(r medium.Radio) mihf.PoA {
	s.t.Helper()
	b, err := os.ReadFile("/sys/class/net/" + ifname(r) + "/address")
	if err != nil {
		s.t.Fatal(err)
	}
	return mihf.PoA(strings.TrimSpace(string(b)))
}

// attach brings the station to the first access point.
func (s *sensed) attach(dBm float64) {
	s.t.Helper()
	s.Join(station, ap1, medium.Steady(dBm))
	s.accessPoint(ap1, 1)
	s.controlled()
	up := s.await(mihf.LinkUp)
	if up.Up.PoA != s.address(ap1) || string(up.Up.SSID) != "mihf" {
		s.t.Errorf("Link_Up at %s in %q", up.Up.PoA, up.Up.SSID)
	}
}

const control = "/run/mihf-supplicant"

// controlled starts a supplicant that takes commands.
func (s *sensed) controlled() {
	s.t.Helper()
	s.program("wpa_supplicant", "-D", "nl80211", "-i", ifname(station), "-c", s.file("controlled.conf", `ctrl_interface=`+control+`
p2p_disabled=1
network={
	ssid="mihf"
	key_mgmt=NONE
	scan_freq=2412 2437
}
`))
}

func (s *sensed) command(args ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "wpa_cli", append([]string{"-p", control, "-i", ifname(station)}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "OK") {
		s.t.Fatalf("wpa_cli %v: %v, %s", args, err, out)
	}
}

// Association: Link_Detected, then Link_Up.
func TestSensedAssociation(t *testing.T) {
	s := start(t).sense()
	s.attach(-50)
	d := s.await(mihf.LinkDetected)
	rssi, _ := d.Detected.Values.Get(mihf.ParamRSSI)
	if d.Detected.PoA != s.address(ap1) || string(d.Detected.SSID) != "mihf" || rssi != -50 {
		t.Errorf("detected %+v", d.Detected)
	}
	s.never(mihf.LinkDown)
}

// The sensor reads what is set, for each dBm.
func TestSensedSignal(t *testing.T) {
	s := start(t).sense()
	s.attach(-50)
	for set := -20; set >= -95; set -= 5 {
		s.Join(station, ap1, medium.Steady(set))
		s.eventually(fmt.Sprintf("%d dBm", set), func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			_, ok := s.rssi[float64(set)]
			return ok
		})
	}
}

// Walk-away: Link_Going_Down before the last data frame, then Link_Down, which comes within
// 50 ms of the kernel's word.
func TestSensedWalkAway(t *testing.T) {
	s := start(t).sense()
	s.attach(-50)
	s.listen(station)
	stop := s.send(ap1, station, 20*time.Millisecond)
	time.Sleep(3 * time.Second) // the walk is preceded by standing still
	s.SetLoss(medium.SNR{})
	s.Join(station, ap1, medium.Fade(-50, -100, 4, true))
	down := s.await(mihf.LinkDown)
	stop()
	going := s.await(mihf.LinkGoingDown)
	last := s.Truth(ap1, station).LastData
	if lead := last.Sub(going.At); lead <= 0 {
		t.Errorf("announced %v after the last data frame", -lead)
	} else {
		t.Logf("announced %v before the last data frame, the kernel gave up %v after it", lead, down.At.Sub(last))
	}
	if down.Down.Reason != mihf.DownBeaconLoss {
		t.Errorf("reason %v", down.Down.Reason)
	}
	s.promptly(&down)
}

// promptly fails unless Link_Down came within 50 ms of the sensor's word.
func (s *sensed) promptly(down *mihf.Event) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.ends[0]
	for _, o := range s.ends {
		if o.At <= down.At {
			last = o
		}
	}
	const emulation = 200 * time.Millisecond
	took := down.At.Sub(last.At)
	s.t.Logf("Link_Down %v after the kernel's word", took)
	if took > 50*time.Millisecond+emulation {
		s.t.Errorf("Link_Down %v after the kernel's word", took)
	}
}

// Walk-back: what was announced is taken back; no Link_Down.
func TestSensedWalkBack(t *testing.T) {
	s := start(t).sense()
	s.attach(-50)
	time.Sleep(3 * time.Second)
	s.Join(station, ap1, medium.Script{{At: 0, DBm: -50}, {At: 8 * time.Second, DBm: -84}, {At: 11 * time.Second, DBm: -50}})
	s.await(mihf.LinkGoingDown)
	s.await(mihf.LinkEventRollback)
	s.never(mihf.LinkDown)
}

// A roam by the supplicant between two access points of one network: a handover, never a
// Link_Down.
func TestSensedRoam(t *testing.T) {
	s := start(t).sense()
	s.attach(-60)
	s.Join(station, ap2, medium.Steady(-50))
	s.accessPoint(ap2, 6)
	second := s.address(ap2)
	s.eventually("the second access point", func() bool {
		for _, e := range s.of(mihf.LinkDetected) {
			if e.Detected.PoA == second {
				return true
			}
		}
		s.command("scan", "freq=2412,2437")
		time.Sleep(time.Second)
		return false
	})
	s.command("roam", string(second))
	e := s.await(mihf.LinkHandoverComplete)
	if e.Handover.OldPoA != s.address(ap1) || e.Handover.NewPoA != second {
		t.Errorf("%+v", e.Handover)
	}
	s.never(mihf.LinkDown)
}

// The access point dies without a word.
func TestSensedAccessPointKilled(t *testing.T) {
	s := start(t).sense()
	s.attach(-50)
	s.Join(station, ap1, medium.Silence{})
	down := s.await(mihf.LinkDown)
	if down.Down.Reason != mihf.DownBeaconLoss {
		t.Errorf("reason %v", down.Down.Reason)
	}
	s.promptly(&down)
}
