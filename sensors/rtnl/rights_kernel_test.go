package rtnl_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
	"mihf.dev/sensors/rtnl"
	"mihf.dev/sensors/sensorstest"
)

// The sensor needs no capability: it gives the same without any.
func TestKernelWithoutCapabilities(t *testing.T) {
	b := newBed(t, nil, second)
	b.fence()
	got := newWorld()
	err := b.ns.Do(func() error { // on a thread that is thrown away
		none := [2]unix.CapUserData{}
		if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), sensorstest.Patience)
		defer cancel()
		s := rtnl.New(rtnl.Options{Settle: -1})
		err := s.Run(ctx, func(o *mihf.Observation) {
			got.add(o)
			if isOK(o) {
				cancel()
			}
		})
		for _, c := range s.Counters() {
			if c.Name == "mihf_rtnl_malformed_messages_total" && c.Value != 0 {
				t.Errorf("%d malformed messages", c.Value)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Links) != len(b.world.Links) || got.Egress != b.world.Egress {
		t.Errorf("without capabilities: %+v\nwith: %+v", got, b.world)
	}
}

// After a suspend everything is read again.
func TestKernelResume(t *testing.T) {
	var suspended atomic.Int64
	b := newBed(t, func(o *rtnl.Options) {
		o.Suspended = func() time.Duration { return time.Duration(suspended.Load()) }
	}, nil)
	b.quiet("nothing")
	suspended.Add(int64(8 * time.Hour))
	b.ns.Down("v0")
	b.all("a complete reading",
		isFacts(b.ns.Index("v0"), func(f *mihf.LinkFacts) bool { return !f.AdminUp }),
		func(o *mihf.Observation) bool { return o.Kind == mihf.ObsResync && !o.Lost })
	b.sameAsFresh()
	if n := b.counter("mihf_rtnl_resyncs_total"); n != 1 {
		t.Errorf("%d resyncs, want 1", n)
	}
}
