package broker_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
)

// "A burst [...] of more than Config.Hints hints [ends] those that follow hints": hundreds of
// flows of several users, frozen at once, end no subscription to events alone, read late as
// it may be; nor one to hints while they fit in their ring, however few events do.
func TestAllFrozenAtOnce(t *testing.T) {
	const users, flows = 3, 100
	for name, c := range map[string]struct {
		hints int
		slow  bool
	}{"fit": {512, false}, "do not": {256, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, func(cfg *broker.Config) { cfg.Replay, cfg.Hints = 16, c.hints })
				b.give(wlan, facts(true))
				for uid := range uint32(users) {
					a := b.attach(user(1000 + uid))
					for range flows {
						b.register(a, mihf.FlowSpec{Link: wlan, LateFreeze: true, Hints: mihf.Hints(mihf.HintFreeze, mihf.HintUnfreeze)})
					}
					read(t, a, 8)
				}
				events := b.subscribe(root, mihf.SubscribeRequest{})
				hints := b.subscribe(root, mihf.SubscribeRequest{Hints: true})
				b.give(wlan, facts(false)) // all are frozen at once
				r := read(t, events, 8)
				r.want("snapshot at 3", "address_changed", "path_lost", "link_down")
				got := read(t, hints, 8).all()
				if err := hints.Err(); errors.Is(err, mihf.ErrSlow) != c.slow {
					t.Errorf("who follows %d hints in a ring of %d: %v", users*flows, c.hints, err)
				}
				if chained(t, 0, got); !c.slow && len(got) != users*flows+4 {
					t.Errorf("%d deliveries, want %d hints, the snapshot and three events", len(got), users*flows)
				}
			})
		})
	}
}
