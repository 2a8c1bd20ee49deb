package manet

import (
	"cmp"
	"slices"
)

// user is a flow in a region, as the region knows it.
type user struct {
	share float64 // what its source was given
	here  bool    // this region bounds it, or nobody does yet
}

// close is how near, relatively, two levels count as one.
const near = 1e-6

// level is what a region suggests to each of the flows that it bounds: step (1) of the
// paper's algorithm, where the flows with a smaller share, bounded elsewhere or by their
// demand, are the assigned ones. It sorts users.
func level(users []user) float64 {
	slices.SortFunc(users, func(a, b user) int {
		return cmp.Or(boolCompare(a.here, b.here), cmp.Compare(a.share, b.share))
	})
	left := 1.0
	for i, u := range users {
		suggestion := left / float64(len(users)-i)
		if u.here || u.share >= suggestion*(1-near) {
			return suggestion
		}
		left -= u.share
	}
	if len(users) == 0 {
		return 1
	}
	return left + users[len(users)-1].share // any one of them could have the rest as well
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// least returns b where it is clearly smaller, else a: of equal bounds the first counts.
func least(a, b bound) bound {
	if b.load < a.load*(1-near) {
		return b
	}
	return a
}
