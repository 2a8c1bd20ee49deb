package queue_test

import (
	"errors"
	"io"
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/queue"
)

// wantEnd checks that a bounded cursor has ended, and cannot be overrun any more.
func (b *bench) wantEnd(c *queue.Cursor) {
	b.Helper()
	if n, err := b.log.Read(c, make([]mihf.Delivery, 1)); n != 0 || !errors.Is(err, io.EOF) || b.log.Overrun(c) {
		b.Fatalf("read gave %d, %v; want io.EOF", n, err)
	}
}

// "A bounded cursor delivers what was in the log when it was bounded, by the same rules, and
// then io.EOF."
func TestBound(t *testing.T) {
	b := newBench(t, 16, 16)
	b.kept(2)
	b.hint(wlan)
	b.report(wlan, mihf.ParamRSSI) // 4
	b.report(wlan, mihf.ParamRSSI)
	b.detected(1)
	c, empty := b.resume(&filter{}, 1), b.start(&filter{})
	b.log.Bound(c)
	b.log.Bound(empty)
	b.kept(1)
	b.report(wwan, mihf.ParamRSSI)
	b.wantEnd(empty)
	b.want(c, "1>2 link_up", "2>3 hint", "3>5 link_parameters_report +1", "5>6 link_detected")
	b.kept(40)
	b.detected(40)
	b.wantEnd(c)
}

// "Of a series that goes on meanwhile it delivers what is still in the ring, one by one."
func TestBoundSeriesGoesOn(t *testing.T) {
	b := newBench(t, 16, 4)
	c := b.start(&filter{})
	for range 3 {
		b.report(wlan, mihf.ParamRSSI) // 1 to 3
	}
	b.log.Bound(c)
	b.report(wlan, mihf.ParamRSSI)
	b.report(wlan, mihf.ParamRSSI) // 1 falls out
	b.want(c, "0>2 link_parameters_report", "2>3 link_parameters_report")
	b.wantEnd(c)
}

// Lost detections are stated in the same words: those in front of the bound alone.
func TestBoundLosesDetections(t *testing.T) {
	b := newBench(t, 16, 4)
	c := b.start(&filter{})
	b.detected(3)
	b.kept(1)
	b.log.Bound(c) // at 4
	b.detected(6)
	b.want(c, "0>3 gap from 0: up to 3 link_detected dropped", "3>4 link_up")
	b.wantEnd(c)
}

// A bounded cursor that has not read a NeverDrop item in time ends as any other.
func TestBoundIsOverrun(t *testing.T) {
	b := newBench(t, 4, 4)
	c := b.start(&filter{})
	b.kept(1)
	b.log.Bound(c)
	b.kept(4)
	if n, err := b.log.Read(c, make([]mihf.Delivery, 8)); n != 0 || !errors.Is(err, mihf.ErrSlow) {
		t.Fatalf("read gave %d, %v; want ErrSlow", n, err)
	}
}
