// Package sensorstest helps to test sensors: [Start] runs one and records what it
// emits, [Contract] checks what every sensor promises.
//
// Limits: waits are bounded by real time ([Patience]); under testing/synctest that is
// the bubble's time.
package sensorstest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/sensors"
)

// Patience is how long a [Recorder] waits for an observation before the test fails.
const Patience = 20 * time.Second

// capacity bounds what a Recorder holds; a sensor that emits more waits for the test.
const capacity = 1 << 16

// Recorder holds what a sensor emitted, oldest first. It is used by the test's goroutine.
type Recorder struct {
	ch     chan mihf.Observation
	cancel context.CancelFunc
	done   chan struct{}
	err    error // of Run; read after done
}

// Start runs the sensor until the test ends, or [Recorder.Stop] is called.
func Start(t testing.TB, s sensors.Sensor) *Recorder {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &Recorder{ch: make(chan mihf.Observation, capacity), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = s.Run(ctx, func(o *mihf.Observation) {
			select {
			case r.ch <- *o:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() { r.Stop(t) })
	return r
}

// Stop ends the sensor and waits for it; it may be called twice.
func (r *Recorder) Stop(t testing.TB) {
	t.Helper()
	r.cancel()
	select {
	case <-r.done:
	case <-time.After(Patience):
		t.Fatal("Run goes on after its context ended")
	}
	if r.err != nil {
		t.Errorf("Run = %v, want nil after its context ended", r.err)
	}
}

// Until returns what was emitted up to and with the first observation that matches. The
// test fails when none comes in time.
func (r *Recorder) Until(t testing.TB, what string, match func(*mihf.Observation) bool) []mihf.Observation {
	t.Helper()
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	var seen []mihf.Observation
	for {
		select {
		case o := <-r.ch:
			seen = append(seen, o)
			if match(&o) {
				return seen
			}
		case <-r.done:
			t.Fatalf("waiting for %s: the sensor ended: %v", what, r.err)
		case <-timeout.C:
			t.Fatalf("waiting for %s; seen:\n%s", what, Format(seen))
		}
	}
}

// Wait is [Recorder.Until] that returns the matching observation only.
func (r *Recorder) Wait(t testing.TB, what string, match func(*mihf.Observation) bool) mihf.Observation {
	t.Helper()
	seen := r.Until(t, what, match)
	return seen[len(seen)-1]
}

// Drain returns what was emitted so far and not yet read.
func (r *Recorder) Drain() []mihf.Observation {
	var seen []mihf.Observation
	for {
		select {
		case o := <-r.ch:
			seen = append(seen, o)
		default:
			return seen
		}
	}
}

// Format shows observations for people, one a line.
func Format(list []mihf.Observation) string {
	var b strings.Builder
	for i := range list {
		o := &list[i]
		fmt.Fprintf(&b, "%v %s %s %s", o.At, o.Sensor, o.Kind, o.Link)
		switch o.Kind {
		case mihf.ObsLink:
			fmt.Fprintf(&b, " %+v", *o.Facts)
		case mihf.ObsAssociation:
			fmt.Fprintf(&b, " %+v", *o.Association)
		case mihf.ObsLinkGone:
			fmt.Fprintf(&b, " %v", o.Gone)
		case mihf.ObsEgress:
			fmt.Fprintf(&b, " %+v", *o.Egress)
		case mihf.ObsPeer:
			fmt.Fprintf(&b, " %+v", *o.Peer)
		case mihf.ObsFlow:
			fmt.Fprintf(&b, " %+v", *o.Flow)
		case mihf.ObsCondition:
			fmt.Fprintf(&b, " %v %s", o.Condition.Condition, o.Condition.Text)
		case mihf.ObsResync:
			fmt.Fprintf(&b, " lost %v", o.Lost)
		case mihf.ObsResume:
			fmt.Fprintf(&b, " gap %v", o.Gap)
		case mihf.ObsRadio, mihf.ObsDetected, mihf.ObsScan, mihf.ObsHandover, mihf.ObsTruth:
			fmt.Fprintf(&b, " %+v", *o)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Check says what is wrong with the form of an observation: "" if nothing is.
func Check(name string, o *mihf.Observation) string {
	payload := map[mihf.ObservationKind]bool{
		mihf.ObsLink: o.Facts != nil, mihf.ObsAssociation: o.Association != nil, mihf.ObsDetected: o.Detected != nil,
		mihf.ObsEgress: o.Egress != nil, mihf.ObsPeer: o.Peer != nil, mihf.ObsFlow: o.Flow != nil, mihf.ObsCondition: o.Condition != nil,
	}
	aboutLink := o.Kind == mihf.ObsFlow && o.Link != "" // of a flow the link may not be known
	switch o.Kind {
	case mihf.ObsLink, mihf.ObsLinkGone, mihf.ObsRadio, mihf.ObsAssociation, mihf.ObsDetected, mihf.ObsScan, mihf.ObsHandover:
		aboutLink = true
	case mihf.ObsEgress, mihf.ObsPeer, mihf.ObsFlow, mihf.ObsCondition, mihf.ObsResync, mihf.ObsResume, mihf.ObsTruth:
	}
	has, needs := payload[o.Kind]
	switch {
	case o.Sensor != name:
		return fmt.Sprintf("sensor %q, want %q", o.Sensor, name)
	case o.At.IsZero():
		return "no time"
	case o.Kind == mihf.ObsTruth:
		return "a sensor never gives the truth"
	case needs && !has:
		return "its payload is missing"
	case aboutLink && !o.Link.Valid():
		return fmt.Sprintf("link %q is not a link id", o.Link)
	case !aboutLink && o.Link != "":
		return fmt.Sprintf("link %q, but it is not about one", o.Link)
	}
	return ""
}

// Contract checks what every sensor promises: New starts nothing (by goleak in the
// caller's TestMain), Run ends with its context with nil, emits nothing after that, can
// run again, and gives observations of the right form. enough says when the sensor has
// emitted what the caller wants to see, for example its first condition.
func Contract(t *testing.T, create func(testing.TB) sensors.Sensor, enough func(*mihf.Observation) bool) {
	t.Helper()
	t.Run("never run", func(t *testing.T) { create(t) })
	t.Run("ended before it starts", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := create(t).Run(ctx, func(o *mihf.Observation) { t.Errorf("emitted %v after the context ended", o.Kind) })
		if err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
	t.Run("twice", func(t *testing.T) {
		s := create(t)
		for range 2 {
			r := Start(t, s)
			for _, o := range r.Until(t, "its first observations", enough) {
				if bad := Check(s.Name(), &o); bad != "" {
					t.Errorf("%s: %s", bad, Format([]mihf.Observation{o}))
				}
			}
			r.Stop(t)
		}
	})
}
