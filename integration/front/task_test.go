package front

import (
	"context"
	"sync"
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
)

// keep runs tasks until the test ends.
func keep(t *testing.T, tasks ...func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	for _, run := range tasks {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { cancel(); running.Wait() })
}

// sees returns a hand on a broker's sensors.
func sees(br *broker.Broker) func(mihf.Observation, mihf.LinkID) {
	return func(o mihf.Observation, link mihf.LinkID) {
		o.At, o.Link, o.Sensor = br.Now(), link, "test"
		br.Observe(&o)
	}
}
