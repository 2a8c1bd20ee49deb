package front

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/mihf"
)

// One crossing, one report.
func testThresholds(w *bed) {
	c := w.dial(w.T, alice)
	r := w.follow(c, mihf.SubscribeRequest{Kinds: mihf.Kinds(mihf.LinkParametersReport)})
	r.snapshot()
	w.see(facts(true))
	w.see(rssi(-50))
	w.until("the link is known", func() bool { _, err := c.Parameters(w.ctx, wlan); return err == nil })
	want := mihf.Threshold{Value: -70, Direction: mihf.ThresholdBelow}
	w.must(c.ConfigureThresholds(w.ctx, wlan, []mihf.ThresholdConfig{{Parameter: mihf.ParamRSSI, Threshold: mihf.Some(want)}}))
	w.see(rssi(-72))
	for {
		e := r.event(mihf.LinkParametersReport)
		got, crossed := e.Report.Threshold.Get()
		if !crossed {
			continue // a change that was reported for itself
		}
		if got != want || e.Report.Parameter != mihf.ParamRSSI || e.Report.Value != -72 || e.Link != wlan {
			w.Errorf("report %+v of %s", e.Report, e.Link)
		}
		return
	}
}

// All items or none, with the reason; nothing that is not a number.
func testThresholdsRefused(w *bed) {
	c := w.dial(w.T, alice)
	w.see(facts(true))
	w.until("the link is known", func() bool { _, err := c.Parameters(w.ctx, wlan); return err == nil })
	below := func(v float64) mihf.ThresholdConfig {
		return mihf.ThresholdConfig{Parameter: mihf.ParamRSSI, Threshold: mihf.Some(mihf.Threshold{Value: v, Direction: mihf.ThresholdBelow})}
	}
	for what, items := range map[string][]mihf.ThresholdConfig{
		"NaN":              {below(-70), below(math.NaN())},
		"infinite":         {below(math.Inf(-1))},
		"out of range":     {below(5)},
		"hysteresis":       {{Parameter: mihf.ParamRSSI, Hysteresis: math.NaN(), Threshold: below(-70).Threshold}},
		"negative period":  {{Parameter: mihf.ParamRSSI, Period: -time.Second}},
		"unknown quantity": {{Parameter: 200, Period: time.Second}},
	} {
		wantErr(w, what, c.ConfigureThresholds(w.ctx, wlan, items), mihf.ErrInvalid)
	}
	wantErr(w, "no such link", c.ConfigureThresholds(w.ctx, "wifi-0000ffff", []mihf.ThresholdConfig{below(-70)}), mihf.ErrNotFound)
}

func testParameters(w *bed) {
	c := w.dial(w.T, alice)
	w.see(facts(true))
	w.see(rssi(-61.5))
	w.until("the value is there", func() bool {
		l, err := c.Parameters(w.ctx, wlan)
		v, _ := l.Values.Get(mihf.ParamRSSI)
		return err == nil && v == -61.5
	})
	there, err := c.Parameters(w.ctx, wlan)
	w.must(err)
	here, err := w.broker.Parameters(w.ctx, inside, wlan)
	w.must(err)
	if diff := cmp.Diff(here, there, near); diff != "" {
		w.Errorf("(-in process +here)\n%s", diff)
	}
	_, err = c.Parameters(w.ctx, "wifi-0000ffff")
	wantErr(w, "no such link", err, mihf.ErrNotFound)
}

func testStatusAndExplain(w *bed) {
	c := w.dial(w.T, admin)
	r := w.follow(c, mihf.SubscribeRequest{})
	r.snapshot()
	w.see(facts(true))
	w.see(rssi(-60))
	w.see(rssi(-85))
	id := r.event(mihf.LinkGoingDown).Prediction.ID
	s, err := c.Status(w.ctx)
	w.must(err)
	if s.Version != "test" || s.Node != "node" || s.Boot != boot || s.Links != 1 || s.Subscribers < 1 || s.Sequence < r.last || len(s.Counters) == 0 {
		w.Errorf("status %+v", s)
	}
	x, err := c.Explain(w.ctx, id)
	w.must(err)
	if x.Prediction.ID != id || x.Announced.ID != id || x.Announced.Revision != 0 || x.Link != wlan || len(x.Samples) == 0 || len(x.Decisions) == 0 {
		w.Errorf("explanation %+v", x)
	}
	_, err = c.Explain(w.ctx, mihf.PredictionID{Boot: boot, N: 999})
	wantErr(w, "no such prediction", err, mihf.ErrNotFound)
}

// Observations come as the sensor made them, and the count of what was missed at the end.
func testRecord(w *bed) {
	c := w.dial(w.T, admin)
	ctx, stop := context.WithCancel(w.ctx)
	enough := errors.New("enough")
	var got []mihf.Observation
	var sensor sync.WaitGroup
	defer sensor.Wait()
	defer stop()
	sensor.Go(func() { // again and again: a recorder cannot say when it is there, and may miss some
		for ctx.Err() == nil {
			w.see(facts(true))
			w.see(rssi(-77))
			time.Sleep(time.Millisecond)
		}
	})
	lost, err := c.Record(ctx, func(o *mihf.Observation) error {
		if next := []mihf.ObservationKind{mihf.ObsLink, mihf.ObsRadio}[len(got)]; o.Kind == next {
			got = append(got, *o)
		}
		if len(got) == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || len(got) != 2 {
		w.Fatalf("%d recorded, %d lost, %v", len(got), lost, err)
	}
	want := []mihf.Observation{facts(true), rssi(-77)}
	for i := range want {
		want[i].At, want[i].Link, want[i].Sensor = w.broker.Now(), wlan, "test"
	}
	if diff := cmp.Diff(want, got, near); diff != "" {
		w.Errorf("(-want +got)\n%s", diff)
	}
	stop()
	lost, err = c.Record(ctx, func(*mihf.Observation) error { return nil })
	if (err != nil && !errors.Is(err, context.Canceled)) || lost != 0 {
		w.Errorf("a record that is over: %d lost, %v", lost, err)
	}
}
