package medium

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

// A lossOf is a loss that is the same for all frames.
type lossOf float64

func (l lossOf) Probability(float64, Rate, int) float64 { return float64(l) }

// frame is one that a radio sends, with two rates.
func frame(kind byte, from Radio, to, by Addr) *Frame {
	f := &Frame{From: from, To: to, By: by, bytes: header(kind, to, by, 100)}
	f.Data = hasContent(f.bytes)
	f.Tries = []Try{{Rate: legacy[3], Count: 2, index: 3}, {Rate: mcs[0], Count: 3, index: 0}}
	return f
}

// send carries a frame to everyone who hears it.
func send(a *Air, now mihf.Time, f *Frame) ([]Reception, Status) {
	heard := a.Transmit(now, f)
	return heard, a.Done(now, f, heard)
}

// joined is the air with a station (0) and two access points, whose addresses are known.
func joined() *Air { return joinedWith(1) }

func joinedWith(seed uint64) *Air {
	a := NewAir(seed)
	a.Own(station, 0)
	a.Own(ap, 1)
	for _, p := range []struct {
		from, to Radio
		s        Signal
	}{{0, 1, Steady(-50.4)}, {1, 0, Steady(-50.6)}, {0, 2, Steady(-70)}, {2, 0, Steady(-70)}} {
		a.Set(10, p.from, p.to, p.s)
	}
	return a
}

var unexported = cmp.AllowUnexported(Reception{})

// "A receiver reads the signal that its pair has, rounded to 1 dBm. A pair that was not joined
// hears nothing."
func TestTransmitToAll(t *testing.T) {
	a := joined()
	heard, status := send(a, 20, frame(beacon, 1, all, ap))
	want := []Reception{{To: 0, SignalDBm: -51, Attempt: 1, rateIndex: 3}}
	if diff := cmp.Diff(want, heard, unexported); diff != "" {
		t.Error("(-want +got)", diff)
	}
	if want := (Status{Acked: true, Attempts: 1, SignalDBm: signalOfNone}); status != want {
		t.Errorf("status %+v, want %+v", status, want)
	}
	if got, want := a.Truth(1, 0), (Truth{LastBeacon: 20, SignalDBm: -51}); got != want {
		t.Errorf("truth %+v, want %+v", got, want)
	}
	heard, _ = send(a, 21, frame(beacon, 0, all, station))
	if len(heard) != 2 || heard[0].To != 1 || heard[1].To != 2 {
		t.Errorf("heard by %+v, want radios 1 and 2", heard)
	}
}

// "Truth of a pair has the moment and the number of the data frames that came through."
func TestTruth(t *testing.T) {
	a := joined()
	if _, s := send(a, 20, frame(qosData, 0, ap, station)); s != (Status{Acked: true, Attempts: 1, SignalDBm: -50}) {
		t.Errorf("status %+v", s)
	}
	send(a, 30, frame(qosNull, 0, ap, station))
	send(a, 40, frame(auth, 0, ap, station))
	if got, want := a.Truth(0, 1), (Truth{LastData: 20, Data: 1, SignalDBm: -50}); got != want {
		t.Errorf("after frames without data: truth %+v, want %+v", got, want)
	}

	a.SetLoss(lossOf(1))
	heard, s := send(a, 50, frame(qosData, 0, ap, station))
	if want := (Status{Attempts: 5, SignalDBm: signalOfNone}); len(heard) > 0 || s != want {
		t.Errorf("heard by %+v, status %+v", heard, s)
	}
	a.SetLoss(NoLoss{})
	a.Set(60, 0, 1, Silence{})
	send(a, 60, frame(qosData, 0, ap, station))
	if got, want := a.Truth(0, 1), (Truth{LastData: 20, Data: 1, DataLost: 2, SignalDBm: -50}); got != want {
		t.Errorf("after losses: truth %+v, want %+v", got, want)
	}
	if got := a.Truth(1, 0); got != (Truth{}) {
		t.Errorf("the other direction: truth %+v", got)
	}
}

// "A frame counts as delivered when the receiver's driver has taken it."
func TestRefused(t *testing.T) {
	a := joined()
	f := frame(qosData, 0, ap, station)
	if heard := a.Transmit(20, f); len(heard) != 1 {
		t.Fatalf("heard by %+v", heard)
	}
	if s := a.Done(20, f, nil); s.Acked || s.Attempts != 5 {
		t.Errorf("status %+v", s)
	}
	if got := a.Truth(0, 1); got.Data != 0 || got.LastData != 0 {
		t.Errorf("truth %+v", got)
	}
}

// "Frames to one station are given to that station's radio alone, where its address is known",
// and a sender's address is known from its first frame.
func TestOwners(t *testing.T) {
	a := joined()
	other := Addr{2, 0, 0, 0, 0, 9}
	if heard, _ := send(a, 20, frame(data, 0, other, station)); len(heard) != 2 {
		t.Errorf("an unknown receiver: heard by %+v", heard)
	}
	send(a, 21, frame(data, 2, station, other))
	if heard, _ := send(a, 22, frame(data, 0, other, station)); len(heard) != 1 || heard[0].To != 2 {
		t.Errorf("a receiver that has sent: heard by %+v", heard)
	}
	a.Disown(other)
	if heard, _ := send(a, 23, frame(data, 0, other, station)); len(heard) != 2 {
		t.Errorf("a receiver that is gone: heard by %+v", heard)
	}
}

// A sender's attempts go through its rates in order, and a receiver takes rates that are not
// legacy ones for the lowest.
func TestAttempts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := joinedWith(rapid.Uint64().Draw(t, "seed"))
		a.SetLoss(lossOf(0.6))
		heard, s := send(a, 20, frame(qosData, 0, ap, station))
		if len(heard) == 0 {
			if s.Acked || s.Attempts != 5 {
				t.Errorf("lost, and status %+v", s)
			}
			return
		}
		r := heard[0]
		wantIndex := int8(3)
		if r.Attempt > 2 {
			wantIndex = 0
		}
		if r.Attempt < 1 || r.Attempt > 5 || r.rateIndex != wantIndex || s.Attempts != r.Attempt || !s.Acked {
			t.Errorf("reception %+v, status %+v", r, s)
		}
	})
}

// A frame to a group, or one that waits for no acknowledgement, is sent once.
func TestOnce(t *testing.T) {
	a := joined()
	a.SetLoss(lossOf(0.5))
	kept := 0
	for i := range 1000 {
		noAck := frame(qosData, 0, ap, station)
		noAck.NoAck = true
		heard, s := send(a, mihf.Time(20+i), noAck)
		if s.Acked || s.Attempts != 1 {
			t.Fatalf("status %+v", s)
		}
		kept += len(heard)
	}
	if kept < 400 || kept > 600 {
		t.Errorf("%d of 1000 came through at a loss of a half", kept)
	}
}

// "The same seed and the same frames at the same moments give the same losses."
func TestSameSeed(t *testing.T) {
	play := func(seed uint64) (heard []int) {
		a := NewAir(seed)
		a.SetLoss(SNR{})
		a.Set(10, 0, 1, Fade(-60, -100, 4, false))
		for i := range 1000 {
			r, _ := send(a, mihf.Time(10+i*10_000_000), frame(beacon, 0, all, station))
			heard = append(heard, len(r))
		}
		return heard
	}
	first := play(7)
	if diff := cmp.Diff(first, play(7)); diff != "" {
		t.Error("the same seed (-first +second)", diff)
	}
	if cmp.Equal(first, play(8)) {
		t.Error("another seed gave the same losses")
	}
}

// "Nothing grows without bound."
func TestBounds(t *testing.T) {
	a := NewAir(1)
	for r := range Radio(MaxRadios) {
		if !a.Set(1, 0, r, Steady(-50)) {
			t.Fatalf("radio %d was refused", r)
		}
	}
	if a.Set(1, 0, MaxRadios, Steady(-50)) || a.Set(1, MaxRadios, 0, Steady(-50)) || len(a.radios) != MaxRadios {
		t.Errorf("%d radios", len(a.radios))
	}
	for i := range MaxAddresses + 1 {
		if got, want := a.Own(Addr{2, byte(i >> 8), byte(i)}, 0), i < MaxAddresses; got != want {
			t.Fatalf("address %d taken: %v", i, got)
		}
	}
	if !a.Own(Addr{2, 0, 1}, 5) {
		t.Error("a known address cannot move")
	}
}

func TestLossCurve(t *testing.T) {
	m := SNR{}
	for _, r := range legacy {
		got := m.Probability(-94+r.NeedDB, r, 1000)
		if diff := cmp.Diff(0.1, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%v Mbit/s at its need (-want +got) %s", r.MbitS, diff)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		signal := rapid.Float64Range(-120, -20).Draw(t, "signal")
		r := rapid.SampledFrom(append(legacy[:len(legacy):len(legacy)], mcs...)).Draw(t, "rate")
		n := rapid.IntRange(16, 4000).Draw(t, "bytes")
		p := m.Probability(signal, r, n)
		if !(p >= 0 && p <= 1) {
			t.Fatalf("probability %v", p)
		}
		if weaker := m.Probability(signal-1, r, n); weaker < p {
			t.Errorf("1 dB weaker: %v, was %v", weaker, p)
		}
		if longer := m.Probability(signal, r, n+100); longer < p {
			t.Errorf("100 bytes longer: %v, was %v", longer, p)
		}
		if quiet := (SNR{NoiseDBm: -100}).Probability(signal, r, n); quiet > p {
			t.Errorf("less noise: %v, was %v", quiet, p)
		}
	})
}

func TestRateOf(t *testing.T) {
	for _, c := range []struct {
		index     int
		flags     uint16
		frequency uint32
		want      Rate
	}{
		{0, 0, 2412, Rate{1, 1}},
		{11, 0, 2412, Rate{54, 22.5}},
		{0, 0, 5180, Rate{6, 5}},
		{7, 0, 5180, Rate{54, 22.5}},
		{127, 0, 5180, Rate{54, 22.5}},
		{15, rateIsMCS, 2412, Rate{65, 24}},
		{0, rateIsMCS | rateIs40, 2412, Rate{13, 8}},
		{0x19, rateIsVHT, 5180, Rate{86.7, 30}},
	} {
		if got := rateOf(c.index, c.flags, c.frequency); math.Abs(got.MbitS-c.want.MbitS) > 1e-9 || got.NeedDB != c.want.NeedDB {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
