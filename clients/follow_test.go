package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"mihf.dev/mihf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// part is what one connection gives: batches, and then an error.
type part struct {
	refused error // open fails
	batches [][]mihf.Delivery
	end     error // nil: nothing more comes
}

// server plays parts and notes what was asked for.
type server struct {
	parts  []part
	asked  []string
	at     []time.Time
	closed int
}

func (s *server) open(ctx context.Context, req mihf.SubscribeRequest) (Stream, error) {
	s.asked = append(s.asked, fmt.Sprintf("after %d of %d", req.After, req.Boot))
	s.at = append(s.at, time.Now())
	if len(s.parts) == 0 {
		return nil, mihf.ErrClosed
	}
	p := s.parts[0]
	s.parts = s.parts[1:]
	if p.refused != nil {
		return nil, p.refused
	}
	return &playing{s: s, ctx: ctx, p: p}, nil
}

type playing struct {
	s   *server
	ctx context.Context
	p   part
}

func (p *playing) Next(buf []mihf.Delivery) (int, error) {
	if len(p.p.batches) > 0 {
		n := copy(buf, p.p.batches[0])
		p.p.batches = p.p.batches[1:]
		return n, nil
	}
	if p.p.end == nil {
		<-p.ctx.Done()
		return 0, context.Cause(p.ctx)
	}
	return 0, p.p.end
}

func (p *playing) Close() { p.s.closed++ }

func event(boot mihf.BootID, previous, sequence uint64) mihf.Delivery {
	return mihf.Delivery{Kind: mihf.DeliverEvent, Previous: previous, Event: mihf.Event{Kind: mihf.LinkUp, Boot: boot, Sequence: sequence}}
}

func hint(boot mihf.BootID, previous, sequence uint64) mihf.Delivery {
	return mihf.Delivery{Kind: mihf.DeliverHint, Previous: previous, Hint: mihf.Hint{Boot: boot, Sequence: sequence}}
}

func snapshot(boot mihf.BootID, sequence uint64) mihf.Delivery {
	return mihf.Delivery{Kind: mihf.DeliverSnapshot, Snapshot: &mihf.Snapshot{Boot: boot, Sequence: sequence}}
}

func gap(from, to uint64) mihf.Delivery {
	return mihf.Delivery{Kind: mihf.DeliverGap, Gap: mihf.Gap{From: from, To: to, Reason: "stated"}}
}

func show(d *mihf.Delivery) string {
	switch d.Kind {
	case mihf.DeliverSnapshot:
		return fmt.Sprintf("snapshot %d", d.Snapshot.Sequence)
	case mihf.DeliverGap:
		return fmt.Sprintf("gap %d-%d %s", d.Gap.From, d.Gap.To, d.Gap.Reason)
	default:
		return fmt.Sprint(d.Sequence())
	}
}

func TestFollow(t *testing.T) {
	batch := func(ds ...mihf.Delivery) [][]mihf.Delivery { return [][]mihf.Delivery{ds} }
	lost := errors.New("connection reset")
	for _, tc := range []struct {
		name  string
		req   mihf.SubscribeRequest
		parts []part
		want  []string
		asked []string
	}{
		{
			name:  "a snapshot and what follows",
			parts: []part{{batches: [][]mihf.Delivery{{snapshot(1, 5), event(1, 5, 7)}, {hint(1, 7, 8), event(1, 8, 11)}}}},
			want:  []string{"snapshot 5", "7", "8", "11"},
			asked: []string{"after 0 of 0"},
		},
		{
			name:  "resumed without a loss",
			parts: []part{{batches: batch(snapshot(1, 5), event(1, 5, 7)), end: lost}, {refused: lost}, {batches: batch(event(1, 7, 8))}},
			want:  []string{"snapshot 5", "7", "8"},
			asked: []string{"after 0 of 0", "after 7 of 1", "after 7 of 1"},
		},
		{
			name:  "ended in good order, though nothing was said of an end",
			parts: []part{{batches: batch(snapshot(1, 5)), end: io.EOF}, {batches: batch(event(1, 5, 7))}},
			want:  []string{"snapshot 5", "7"},
			asked: []string{"after 0 of 0", "after 5 of 1"},
		},
		{
			name:  "resumed from the caller's place",
			req:   mihf.SubscribeRequest{After: 7, Boot: 1},
			parts: []part{{batches: batch(event(1, 7, 8))}},
			want:  []string{"8"},
			asked: []string{"after 7 of 1"},
		},
		{
			name:  "slow",
			parts: []part{{batches: batch(snapshot(1, 5), event(1, 5, 7)), end: mihf.ErrSlow}, {batches: batch(gap(7, 90), snapshot(1, 90), event(1, 90, 91))}},
			want:  []string{"snapshot 5", "7", "gap 7-90 stated", "snapshot 90", "91"},
			asked: []string{"after 0 of 0", "after 7 of 1"},
		},
		{
			name:  "restarted, and the broker does not say what was missed",
			parts: []part{{batches: batch(snapshot(1, 5)), end: lost}, {batches: batch(snapshot(2, 3), event(2, 3, 4))}},
			want:  []string{"snapshot 5", "gap 5-3 the connection was lost", "snapshot 3", "4"},
			asked: []string{"after 0 of 0", "after 5 of 1"},
		},
		{
			name:  "a loss on the way",
			parts: []part{{batches: batch(snapshot(1, 5), event(1, 5, 7), event(1, 8, 9))}, {batches: batch(snapshot(1, 9), event(1, 9, 10))}},
			want:  []string{"snapshot 5", "7", "gap 7-9 deliveries were lost on the way", "snapshot 9", "10"},
			asked: []string{"after 0 of 0", "after 0 of 0"},
		},
		{
			name:  "another run in the middle of a stream",
			parts: []part{{batches: batch(snapshot(1, 5), event(2, 5, 6))}, {batches: batch(snapshot(2, 6))}},
			want:  []string{"snapshot 5", "gap 5-6 deliveries were lost on the way", "snapshot 6"},
			asked: []string{"after 0 of 0", "after 0 of 0"},
		},
		{
			name:  "a loss right after the snapshot that made up for one",
			parts: []part{{batches: batch(snapshot(1, 5)), end: lost}, {batches: batch(snapshot(1, 9), event(1, 7, 10))}, {batches: batch(snapshot(1, 12))}},
			want:  []string{"snapshot 5", "gap 5-9 the connection was lost", "snapshot 9", "gap 9-12 deliveries were lost on the way", "snapshot 12"},
			asked: []string{"after 0 of 0", "after 5 of 1", "after 0 of 0"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{parts: tc.parts}
				f, err := Follow(t.Context(), tc.req, s.open)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				buf := make([]mihf.Delivery, 3)
				for len(got) < len(tc.want) {
					n, err := f.Next(buf)
					if err != nil {
						t.Fatalf("after %q: %v", got, err)
					}
					for i := range buf[:n] {
						got = append(got, show(&buf[i]))
					}
				}
				f.Close()
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("delivered (-want +got)\n%s", diff)
				}
				if diff := cmp.Diff(tc.asked, s.asked); diff != "" {
					t.Errorf("asked (-want +got)\n%s", diff)
				}
			})
		})
	}
}

func TestFollowEnds(t *testing.T) {
	for _, tc := range []struct {
		name string
		part part
		want error
	}{
		{"refused at first", part{refused: mihf.ErrPermission}, mihf.ErrPermission},
		{"not reached at first", part{refused: mihf.ErrClosed}, mihf.ErrClosed},
		{"refused later", part{end: mihf.ErrInvalid}, mihf.ErrInvalid},
		{"has all", part{end: io.EOF}, io.EOF},
	} {
		s := &server{parts: []part{tc.part}}
		f, err := Follow(t.Context(), mihf.SubscribeRequest{Present: true}, s.open)
		if err == nil {
			_, err = f.Next(make([]mihf.Delivery, 1))
		}
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
		if len(s.asked) != 1 {
			t.Errorf("%s: asked %d times, want once", tc.name, len(s.asked))
		}
	}
}

func TestFollowClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{parts: []part{{}}}
		f, err := Follow(t.Context(), mihf.SubscribeRequest{}, s.open)
		if err != nil {
			t.Fatal(err)
		}
		go f.Close()
		if _, err := f.Next(make([]mihf.Delivery, 1)); !errors.Is(err, mihf.ErrClosed) {
			t.Errorf("Next: %v, want %v", err, mihf.ErrClosed)
		}
		f.Close()
		if <-f.Done(); !errors.Is(f.Err(), mihf.ErrClosed) {
			t.Errorf("Err: %v", f.Err())
		}
		if s.closed != 1 {
			t.Errorf("%d streams closed, want 1", s.closed)
		}
	})
}

// "It ends when its context ends", also while nobody reads.
func TestFollowEndsUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		feed, err := Follow(ctx, mihf.SubscribeRequest{}, (&server{parts: []part{{}}}).open)
		if err != nil {
			t.Fatal(err)
		}
		cancel(why)
		synctest.Wait()
		select {
		case <-feed.Done():
		default:
			t.Error("not done")
		}
		if !errors.Is(feed.Err(), why) {
			t.Errorf("ended with %v, want %v", feed.Err(), why)
		}
	})
}

// A connection that has delivered something begins the pauses anew.
func TestFollowPausesAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away, lost := part{refused: mihf.ErrClosed}, errors.New("connection reset")
		s := &server{parts: []part{
			{batches: [][]mihf.Delivery{{snapshot(1, 1)}}, end: lost},
			away, away, away, away,
			{batches: [][]mihf.Delivery{{event(1, 1, 2)}}, end: lost},
			{batches: [][]mihf.Delivery{{event(1, 2, 3)}}},
		}}
		feed, err := Follow(t.Context(), mihf.SubscribeRequest{}, s.open)
		if err != nil {
			t.Fatal(err)
		}
		defer feed.Close()
		for range 3 {
			if _, err := feed.Next(make([]mihf.Delivery, 1)); err != nil {
				t.Fatal(err)
			}
		}
		before, after := s.at[5].Sub(s.at[4]), s.at[6].Sub(s.at[5])
		if before < 4*firstPause || after > firstPause {
			t.Errorf("pause of %v while the broker was away, %v after it was back", before, after)
		}
	})
}

// A broker that is away is asked again and again, at most every 3 s, until the context ends.
func TestFollowKeepsTrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := &server{parts: []part{{end: mihf.ErrClosed}}}
		f, err := Follow(ctx, mihf.SubscribeRequest{}, s.open)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Next(make([]mihf.Delivery, 1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next: %v", err)
		}
		if n := len(s.asked); n < 20 || n > 60 {
			t.Errorf("asked %d times in a minute", n)
		}
		for i := range s.at[1:] {
			if d := s.at[i+1].Sub(s.at[i]); d > maxPause {
				t.Errorf("pause %v", d)
			}
		}
	})
}

func TestBackoff(t *testing.T) {
	var b Backoff
	for _, ms := range []int64{50, 100, 200, 400, 800, 1600, 3000, 3000} {
		want := time.Duration(ms * 1e6)
		if got := b.Pause(); got > want || got < want/2 {
			t.Errorf("pause %v, want %v to %v", got, want/2, want)
		}
	}
	b.Reset()
	if got := b.Pause(); got > firstPause {
		t.Errorf("pause %v after a reset", got)
	}
}
