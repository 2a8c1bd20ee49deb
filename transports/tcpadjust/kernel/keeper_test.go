package kernel_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/transports/tcpadjust/kernel"
)

func TestKeeper(t *testing.T) {
	var k kernel.Keeper
	k.Note([]kernel.Socket{
		{Cookie: 1, Cwnd: 100, BytesAcked: 10}, {Cookie: 2, Cwnd: 10, BytesReceived: 10}, {Cookie: 3, Cwnd: 50, BytesAcked: 10},
	})
	// The path has gone: 1 has lost and shrunk, 3 stands still, 2 waits for data.
	k.Note([]kernel.Socket{
		{Cookie: 1, Cwnd: 1, LostOut: 5, BytesAcked: 12}, {Cookie: 2, Cwnd: 10, BytesReceived: 10}, {Cookie: 3, Cwnd: 1, BytesAcked: 10},
	})
	got := k.Recover([]kernel.Socket{
		{Cookie: 1, Cwnd: 1, PacketsOut: 5}, {Cookie: 2, Cwnd: 10}, {Cookie: 3, Cwnd: 1, PacketsOut: 1}, {Cookie: 4, Cwnd: 7, PacketsOut: 1},
	})
	want := []kernel.Order{
		{Cookie: 1, Cwnd: 100, Ssthresh: 100, Acks: 1, Push: true},
		{Cookie: 2, Acks: 1},
		{Cookie: 3, Cwnd: 50, Ssthresh: 50, Acks: 1, Push: true},
		{Cookie: 4, Acks: 1, Push: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("orders (-want +got):\n%s", diff)
	}
	// A window that data has moved in since is the window.
	k.Note([]kernel.Socket{{Cookie: 1, Cwnd: 20, BytesAcked: 99}})
	got = k.Recover([]kernel.Socket{{Cookie: 1, PacketsOut: 1}, {Cookie: 3, PacketsOut: 1}})
	if got[0].Cwnd != 20 || got[1].Cwnd != 0 {
		t.Errorf("%+v: want 20, and nothing of what is forgotten", got)
	}
}
