package access_test

import (
	"testing"

	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
)

// "Shares bounds what all callers hold of something together, and each of them alone", and
// nothing is lost on the way.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := access.Shares{Each: 4, Total: 10}
		held, sum := map[uint32]int64{}, int64(0)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			uid := rapid.Uint32Range(0, 4).Draw(t, "uid")
			n := rapid.Int64Range(1, 12).Draw(t, "n")
			if rapid.Bool().Draw(t, "give") {
				if n = min(n, held[uid]); n > 0 {
					s.Give(user(uid).Identity(), n)
					held[uid] -= n
					sum -= n
				}
				continue
			}
			want := access.Enough
			switch {
			case held[uid] > 0 && held[uid]+n > 4:
				want = access.OwnFull
			case sum > 0 && sum+n > 10:
				want = access.TotalFull
			}
			if got := s.Take(user(uid).Identity(), n); got != want {
				t.Fatalf("%d for %d, who holds %d of %d: %v, want %v", n, uid, held[uid], sum, got, want)
			}
			if want == access.Enough {
				held[uid] += n
				sum += n
			}
		}
		if s.Sum() != sum {
			t.Errorf("%d held, want %d", s.Sum(), sum)
		}
		for uid, n := range held {
			s.Give(user(uid).Identity(), n)
		}
		if s.Sum() != 0 || s.Take(mihf.Identity{}, 100) != access.Enough {
			t.Error("what was given back is not there")
		}
	})
}
