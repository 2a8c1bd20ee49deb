package broker_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/mihf"
)

func TestHandlerSeesAllInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.give("", slept())
		var got []mihf.Delivery
		cancel, err := b.Handle(t.Context(), alice, mihf.SubscribeRequest{Hints: true}, func(d *mihf.Delivery) { got = append(got, *d) })
		if err != nil {
			t.Fatal(err)
		}
		b.register(b.attach(alice), mihf.FlowSpec{RTT: 100 * time.Millisecond})
		b.give(wlan, facts(true))
		b.give(wlan, rssi(-85))
		chained(t, 1, got)
		var words []string
		for i := range got {
			words = append(words, show(&got[i]))
		}
		want := []string{"link_up", "path_usable", "link_going_down", "freeze predicted"}
		words = only(words, want)
		if d := cmp.Diff(want, words); d != "" {
			t.Errorf("handled (-want +got):\n%s", d)
		}
		cancel()
		cancel()
		n := len(got)
		b.give("", slept())
		if len(got) != n {
			t.Error("called after it was cancelled")
		}
	})
}

// only returns those of words that are wanted at all.
func only(words, wanted []string) []string {
	var out []string
	for _, w := range words {
		if slices.Contains(wanted, w) {
			out = append(out, w)
		}
	}
	return out
}

// "Cancel may be called by any goroutine, by f too": of other handlers, too, and feeds may
// be closed there.
func TestCancelInTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		feed := b.subscribe(alice, mihf.SubscribeRequest{})
		var calls [3]int
		var cancels [3]func()
		for i := range calls {
			var err error
			cancels[i], err = b.Handle(t.Context(), alice, mihf.SubscribeRequest{}, func(*mihf.Delivery) {
				calls[i]++
				if i == 1 {
					cancels[1]()
					cancels[2]()
					feed.Close()
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		b.give("", slept())
		b.give("", slept())
		if calls != [3]int{2, 1, 0} {
			t.Errorf("calls %v, want 2, 1, 0", calls)
		}
		if !errors.Is(feed.Err(), mihf.ErrClosed) {
			t.Errorf("feed: %v", feed.Err())
		}
	})
}

func TestHandlerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		_, err := b.Handle(t.Context(), mihf.Caller{}, mihf.SubscribeRequest{Hints: true}, func(*mihf.Delivery) {})
		if !errors.Is(err, mihf.ErrPermission) {
			t.Errorf("got %v, want ErrPermission", err)
		}
		b.end()
		if _, err := b.Handle(t.Context(), alice, mihf.SubscribeRequest{}, func(*mihf.Delivery) {}); !errors.Is(err, mihf.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}
