package wifi

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/integration/vm"
	"mihf.dev/integration/vm/medium"
	"mihf.dev/mihf"
)

// What make results measures.
const (
	walks     = 42 // as many as fill their batches; at least 40
	stillFor  = 30 * time.Minute
	busyFor   = time.Minute
	handovers = 20
)

// TestResultsRadio measures walks, still stations, hand-overs and the daemon's processor time,
// and writes docs/results/radio.md with its plots.
func TestResultsRadio(t *testing.T) {
	full(t)
	begin := time.Now()
	var p page
	t.Run("walks", func(t *testing.T) {
		d, lanes := startLanes(t, setup{fronts: 1})
		list := d.walkAll(lanes, walks)
		wantLeads(t, list)
		p.walks(list)
		p.shown(d, list)
	})
	t.Run("handover", func(t *testing.T) { p.handovers(handOvers(t, handovers)) })
	t.Run("still", func(t *testing.T) {
		d, lanes := startLanes(t, setup{fronts: 1})
		n, crossings := d.alarms(lanes, stillFor)
		stations := float64(len(lanes)) * stillFor.Minutes()
		if share := float64(n) / stations * 30; share > 1 {
			t.Errorf("%.2f false alarms in 30 minutes", share)
		}
		p.still(stations, n, crossings)
	})
	t.Run("processor", func(t *testing.T) {
		idle, busy := processor(t)
		p.processor(idle, busy)
	})
	p.write(t, time.Since(begin))
}

// processor measures the daemon's share of a processor when nothing changes, and when it reads
// one interface ten times a second.
func processor(t *testing.T) (idle, busy float64) {
	t.Helper()
	d := start(t).daemonWith(setup{fronts: 1})
	d.attach(-50, network{})
	time.Sleep(10 * time.Second) // the attachment is new: it is read often
	idle = d.used(busyFor)
	d.Join(station, ap1, medium.Steady(-70))
	time.Sleep(5 * time.Second)
	busy = d.used(busyFor)
	if idle >= 0.01 || busy > 0.03 {
		t.Errorf("of a processor: %.2f %% when nothing changes, %.2f %% at ten readings a second", idle*100, busy*100)
	}
	return idle, busy
}

// used is the daemon's share of a processor in a time.
func (d *daemon) used(length time.Duration) float64 {
	d.t.Helper()
	before := d.ran()
	time.Sleep(length)
	return float64(d.ran()-before) / float64(length)
}

// ran is how long the daemon's threads have run.
func (d *daemon) ran() (sum time.Duration) {
	d.t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", d.cmd.Process.Pid))
	if err != nil || len(tasks) == 0 {
		d.t.Fatal("the daemon's threads:", err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // it has ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			d.t.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// TestProcessor: the daemon takes less than 1 % of a processor when nothing changes, and at most
// 3 % at ten readings a second of one interface.
func TestProcessor(t *testing.T) {
	idle, busy := processor(t)
	t.Logf("of a processor of 1000 MIPS: %.2f %% when nothing changes, %.2f %% at ten readings a second", idle*100, busy*100)
}

// A page is what is written of the measurements.
type page struct {
	strings.Builder
	plots map[string]string
}

func (p *page) plot(name string, one *plot) {
	if p.plots == nil {
		p.plots = map[string]string{}
	}
	p.plots[name] = one.svg()
	fmt.Fprintf(p, "![%s](%s)\n\n", one.title, name)
}

func (p *page) walks(list []*walked) {
	of := len(list)
	percent := func(so func(*walked) bool) string {
		n := share(list, so)
		return fmt.Sprintf("%d of %d (%d %%)", n, of, n*100/of)
	}
	fmt.Fprintf(p, "## Walk-away\n\n%d walks at %g to %g dB/s from %g dBm, shadowing of %g dB that lasts %v, RTT of the flow %d to %d ms. Counted to the last data frame that the medium delivered.\n\n",
		of, slowest, fastest, fromDBm, shadowDB, shadowLasts, shortestRTT.Milliseconds(), longestRTT.Milliseconds())
	p.WriteString("| what | at least one RTT before | lead p10 | p50 | p90 |\n|---|---|---|---|---|\n")
	plotted := &plot{title: "Leads of the walks", x: "pace, dB/s", y: "seconds before the last data frame", fromX: 0, toX: fastest + 0.5, fromY: -2, toY: 18}
	for _, c := range []struct {
		name, colour string
		of           func(*walked) lead
	}{
		{"Link_Going_Down", "#1f6fb2", func(w *walked) lead { return w.going }},
		{"Freeze of the flow", "#c2410c", func(w *walked) lead { return w.frozen }},
		{fmt.Sprintf("CQM level %d dBm crossed", cqmDBm), "#777", func(w *walked) lead { return w.crossing }},
	} {
		p10, p50, p90 := quantiles(list, c.of)
		fmt.Fprintf(p, "| %s | %s | %.2f s | %.2f s | %.2f s |\n", c.name, percent(func(w *walked) bool { return w.inTime(c.of(w)) }),
			p10.Seconds(), p50.Seconds(), p90.Seconds())
		s := series{name: c.name, colour: c.colour}
		for _, w := range list {
			if l := c.of(w); l.came {
				s.points = append(s.points, [2]float64{w.pace, l.Seconds()})
			}
		}
		plotted.series = append(plotted.series, s)
	}
	p10, p50, p90 := quantiles(list, func(w *walked) lead { return lead{w.lost, true} })
	fmt.Fprintf(p, "\nThe kernel's disconnect came p10 %.2f, p50 %.2f, p90 %.2f s behind the last data frame.\n\n", p10.Seconds(), p50.Seconds(), p90.Seconds())
	p.plot("radio-leads.svg", plotted)
	p.WriteString("| flow, 50 packets a second | runs with nothing sent after the last delivered frame | sent after it, mean | lost in the fade before it, mean |\n|---|---|---|---|\n")
	p.losses("UDP with hints", list, func(w *walked) losses { return w.hinted })
	p.losses("UDP without", list, func(w *walked) losses { return w.bare })
	tcp, none := 0, 0
	for _, w := range list {
		tcp += w.tcpAfter
		if w.tcpAfter == 0 {
			none++
		}
	}
	fmt.Fprintf(p, "| kernel TCP (segments, repeats counted) | %d of %d | %.1f | |\n\n", none, of, float64(tcp)/float64(of))
}

func (p *page) losses(name string, list []*walked, of func(*walked) losses) {
	after, fade, none := 0, 0, 0
	for _, w := range list {
		l := of(w)
		after, fade = after+l.after, fade+l.fade
		if l.after == 0 {
			none++
		}
	}
	n := float64(len(list))
	fmt.Fprintf(p, "| %s | %d of %d | %.1f | %.1f |\n", name, none, len(list), float64(after)/n, float64(fade)/n)
}

// shown is one walk over time.
func (p *page) shown(d *daemon, list []*walked) {
	d.t.Helper()
	w := list[len(list)/2]
	e := d.explained(w.prediction)
	at := func(t mihf.Time) float64 { return t.Sub(w.begin).Seconds() }
	signal := series{name: "signal read, dBm", colour: "#1f6fb2", line: true}
	forecast := series{name: "P(loss within 2 s), 0 at -100 dBm to 1 at -50 dBm", colour: "#c2410c", line: true}
	for _, s := range e.Samples {
		if v, ok := s.Values.Get(mihf.ParamRSSI); ok {
			signal.points = append(signal.points, [2]float64{at(s.At), v})
		}
	}
	for _, f := range e.Forecasts {
		forecast.points = append(forecast.points, [2]float64{at(f.At), -100 + 50*f.PLoss})
	}
	from := at(w.last) - 12
	if len(signal.points) > 0 {
		from = max(from, signal.points[0][0])
	}
	p.plot("radio-walk.svg", &plot{
		title: fmt.Sprintf("One walk at %.1f dB/s", w.pace), x: "seconds from the walk's begin", y: "dBm",
		fromX: from, toX: at(w.last) + 2, fromY: -105, toY: -45,
		series: []series{signal, forecast},
		marks: []mark{
			{at(w.last.Add(-w.going.Duration)), "Link_Going_Down", "#b00"},
			{at(w.last.Add(-w.frozen.Duration)), "Freeze", "#b00"},
			{at(w.last), "last data frame", "#000"},
			{at(w.last.Add(w.lost)), "the kernel's word", "#000"},
		},
	})
}

func (p *page) still(stations float64, alarms, crossings int) {
	fmt.Fprintf(p, "## Still and slow stations\n\nOver %.0f minutes of stations at -55, -65 and -72 dBm, and of stations that go to and fro between -57 and -75 dBm at 0.3 dB/s, all with that shadowing: %d false alarms (%.2f in 30 minutes). A CQM level at %d dBm was crossed downwards %d times.\n\n",
		stations, alarms, float64(alarms)/stations*30, cqmDBm+8, crossings)
}

func (p *page) processor(idle, busy float64) {
	fmt.Fprintf(p, "## The daemon's processor time\n\nIn the guest, whose processor executes 1000 million instructions a second: %.2f %% when nothing changes (less than 1 %% asked for), %.2f %% at ten readings a second of one interface (3 %%).\n",
		idle*100, busy*100)
}

// write leaves the page and its plots for docs/results.
func (p *page) write(t *testing.T, took time.Duration) {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	head := fmt.Sprintf("# Radios\n\nMeasured by `make results` in a guest of integration/vm: Linux %s with mac80211_hwsim, hostapd and wpa_supplicant, six stations at one access point, between them integration/vm/medium with losses by signal and rate; a real mihfd with its defaults, seen over gRPC; %s; %v of the guest's time. Flows are UDP and TCP from a namespace behind the access point; half an RTT lies between it and the sender.\n\n",
		unix.ByteSliceToString(u.Release[:]), runtime.Version(), took.Round(time.Second))
	files := map[string]string{"radio.md": strings.TrimRight(head+p.String(), "\n") + "\n"}
	maps.Copy(files, p.plots)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(vm.KeepDir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(files["radio.md"])
}
