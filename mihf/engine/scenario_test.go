package engine_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/engine"
	"mihf.dev/predictors/level"
)

// Scenarios are text: commands at the start of a line, below each the trace that it gave,
// behind "> ". With -update the traces are written anew; commit them only if you
// understand the difference.
var update = flag.Bool("update", false, "write the traces of the scenarios anew")

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, file, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("the trace differs (-update writes it anew):\n%s", firstDifference(string(want), got))
			}
			if again := play(t, file, string(want)); again != got {
				t.Errorf("played again it differs:\n%s", firstDifference(got, again))
			}
		})
	}
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		x, y := "", ""
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return fmt.Sprintf("line %d\n-%s\n+%s", i+1, x, y)
		}
	}
	return ""
}

// scenario plays one file. Its links have short names there.
type scenario struct {
	*engineTest
	out     bytes.Buffer
	reports bool // show parameter reports too
}

var shortNames = map[string]mihf.LinkID{"wifi": wlan, "wwan": wwan, "eth": "ethernet-00000003", "tun": "tunnel-00000004", "": ""}

func play(t *testing.T, file, text string) string {
	t.Helper()
	s := &scenario{}
	s.engineTest = newEngine(t, func(c *engine.Config) {
		if strings.Contains(text, "\npredictor level\n") {
			c.NewPredictor = func(mihf.LinkID) engine.Predictor { return level.New() }
			return
		}
		c.NewPredictor = func(l mihf.LinkID) engine.Predictor { return s.tell(l) }
	})
	for n, command := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if strings.HasPrefix(command, "> ") {
			continue
		}
		fmt.Fprintln(&s.out, command)
		if command == "" || command[0] == '#' {
			continue
		}
		if err := s.do(strings.Fields(command)); err != nil {
			t.Fatalf("%s: %q, around line %d: %v", file, command, n+1, err)
		}
		s.trace()
	}
	s.check.snapshot(s.now, s.e)
	return s.out.String()
}

// trace writes what came out, with the time since the start.
func (s *scenario) trace() {
	for i := range s.got {
		it := &s.got[i]
		at := it.Event.At
		if it.IsHint {
			at = it.Hint.At
		}
		if !s.reports && !it.IsHint && (it.Event.Kind == mihf.LinkParametersReport || it.Event.Kind == mihf.AddressChanged) {
			continue
		}
		text := line(it)
		for short, id := range shortNames {
			if short != "" {
				text = strings.ReplaceAll(text, string(id), short)
			}
		}
		fmt.Fprintf(&s.out, "> %8.3f %s\n", at.Sub(start).Seconds(), text)
	}
	s.drop()
}

// words are a command's arguments: bare ones, and those that have a name.
type words struct {
	bare  map[string]bool
	named map[string]string
	err   error
}

func parseWords(args []string) *words {
	w := &words{bare: map[string]bool{}, named: map[string]string{}}
	for _, a := range args {
		if k, v, ok := strings.Cut(a, "="); ok {
			w.named[k] = v
		} else {
			w.bare[a] = true
		}
	}
	return w
}

func (w *words) list(k string) []string {
	if w.named[k] == "" {
		return nil
	}
	return strings.Split(w.named[k], ",")
}

func (w *words) duration(k string) time.Duration {
	if w.named[k] == "" {
		return 0
	}
	d, err := time.ParseDuration(w.named[k])
	if err != nil {
		w.err = err
	}
	return d
}

func (w *words) number(k string) float64 {
	if w.named[k] == "" {
		return 0
	}
	v, err := strconv.ParseFloat(w.named[k], 64)
	if err != nil {
		w.err = err
	}
	return v
}

func (s *scenario) do(f []string) error {
	verb, link, w := f[0], mihf.LinkID(""), parseWords(f[1:])
	if len(f) > 1 {
		link = shortNames[f[1]]
	}
	switch verb {
	case "predictor":
	case "reports":
		s.reports = true
	case "wait":
		d, err := time.ParseDuration(f[1])
		if err != nil {
			return err
		}
		s.advance(d)
	case "resume": // after a suspend, in which nothing was looked at
		d, err := time.ParseDuration(f[1])
		if err != nil {
			return err
		}
		s.check.suspends = true
		s.now = s.now.Add(d)
		s.give("", &mihf.Observation{Kind: mihf.ObsResume, Gap: d})
	case "facts":
		s.give(link, device{down: w.bare["down"], admin: w.bare["admin"], addrs: w.list("addr"), routes: w.list("route"), name: w.named["name"]}.facts())
	case "gone":
		s.give(link, gone())
	case "assoc":
		state, ok := mihf.ParseAssociationState(f[2])
		if !ok {
			return fmt.Errorf("state %q", f[2])
		}
		s.give(link, association(state, mihf.PoA(w.named["poa"]), w.named["ssid"]))
	case "left":
		cause, ok := mihf.ParseDownReason(w.named["cause"])
		if !ok {
			return fmt.Errorf("cause %q", w.named["cause"])
		}
		s.give(link, left(cause, w.bare["local"]))
	case "order":
		s.give(link, &mihf.Observation{Kind: mihf.ObsHandover, PoA: mihf.PoA(w.named["poa"])})
	case "radio":
		s.give(link, radio(mihf.PoA(w.named["poa"]), w.number("rssi")))
	case "walk":
		return s.walk(link, w)
	case "egress":
		s.give("", egress(shortNames[w.named["to"]]))
	case "peer":
		s.give("", peer(f[1], shortNames[w.named["to"]]))
	case "foresee":
		*s.tell(link) = scripted{loss: w.number("loss"), handover: w.number("handover"), within: w.duration("within"), told: s.now}
	case "flow":
		return s.newFlow(f[1], w)
	case "status":
		s.status()
	default:
		return fmt.Errorf("unknown verb")
	}
	return w.err
}

func (s *scenario) newFlow(id string, w *words) error {
	continuity, ok := mihf.ParseContinuity(w.named["continuity"])
	if !ok {
		return fmt.Errorf("continuity %q", w.named["continuity"])
	}
	spec := mihf.FlowSpec{
		ID: mihf.FlowID(id), Link: shortNames[w.named["link"]], Continuity: continuity, LateFreeze: w.bare["late"],
		RTT: w.duration("rtt"), MaxFreeze: w.duration("max_freeze"), Recovery: w.duration("recovery"),
	}
	if w.named["local"] != "" || w.named["remote"] != "" {
		spec.Tuples = []mihf.Endpoints{tuple(w.named["local"], w.named["remote"])}
	}
	s.register(spec)
	return w.err
}

// walk gives readings that go evenly from one level to another, with noise of a fixed seed.
func (s *scenario) walk(link mihf.LinkID, w *words) error {
	from, to, over, every, noise := w.number("from"), w.number("to"), w.duration("over"), w.duration("every"), w.number("noise")
	swing := w.number("swing") // a square wave on top, of a period of 2 s
	if w.err != nil || every <= 0 {
		return w.err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for d := every; d <= over; d += every {
		s.advance(every)
		v := from + (to-from)*d.Seconds()/over.Seconds() + noise*rng.NormFloat64()
		if d/time.Second%2 == 0 {
			v += swing
		} else {
			v -= swing
		}
		s.give(link, radio(mihf.PoA(w.named["poa"]), max(min(v, -11), -109)))
	}
	return nil
}

func (s *scenario) status() {
	snap := s.e.Snapshot(s.now, func(uint32) bool { return true })
	for i := range snap.Links {
		l := &snap.Links[i]
		fmt.Fprintf(&s.out, "> link %s up=%v v4=%v v6=%v hold_down=%v\n", l.Link.Type(), l.Up, l.UsableIPv4, l.UsableIPv6, l.HoldDown)
	}
	for i := range snap.Flows {
		f := &snap.Flows[i]
		fmt.Fprintf(&s.out, "> flow %s on=%s frozen=%v needless=%v\n", f.Spec.ID, f.Link.Type(), f.Frozen, f.Needless.Round(time.Millisecond))
	}
}
