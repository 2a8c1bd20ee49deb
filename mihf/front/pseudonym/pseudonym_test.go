package pseudonym

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
)

// The first octets of HMAC-SHA-256, as RFC 4231 has them for its first case (a key of fewer
// octets than the block is filled up with zeros).
func TestVector(t *testing.T) {
	var k Key
	copy(k[:], strings.Repeat("\x0b", 20))
	if got := k.PoA("Hi There"); got != "poa-b0344c61d8db3853" {
		t.Errorf("%s", got)
	}
}

func TestPoA(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := mihf.PoA(rapid.StringN(1, 64, 64).Draw(t, "a")), mihf.PoA(rapid.StringN(1, 64, 64).Draw(t, "b"))
		key := Key(rapid.SliceOfN(rapid.Byte(), KeySize, KeySize).Draw(t, "key"))
		other := key
		other[rapid.IntRange(0, KeySize-1).Draw(t, "octet")]++
		p := key.PoA(a)
		switch {
		case !Valid(p):
			t.Fatalf("%q has not the form", p)
		case (p == key.PoA(b)) != (a == b):
			t.Fatalf("%q and %q: %q and %q", a, b, p, key.PoA(b))
		case p == other.PoA(a):
			t.Fatal("another key gives the same")
		}
	})
	if (&Key{}).PoA("") != "" || (*Key)(nil).PoA("x") != "x" {
		t.Error("no id, or no key: want it as it is")
	}
	for _, p := range []mihf.PoA{"", "02:00:00:00:01:02", "poa-", "poa-0123456789abcde", "poa-0123456789abcdeg", "poa-0123456789abcdef0", "0123456789abcdef"} {
		if Valid(p) {
			t.Errorf("%q passes for a pseudonym", p)
		}
	}
}

// A question by pseudonyms is answered with what they stand for, and one by ids is refused.
func TestInformation(t *testing.T) {
	key := &Key{1}
	known := mihf.Information{At: 7, Forgotten: 3, PoAs: []mihf.PoAInformation{{PoA: "a"}, {PoA: "b"}, {PoA: "a", Link: "l"}}}
	var asked []mihf.InformationRequest
	ask := func(q mihf.InformationRequest) (*mihf.Information, error) {
		asked = append(asked, q)
		return &known, nil
	}
	q := mihf.InformationRequest{Links: []mihf.LinkID{"l"}, PoAs: []mihf.PoA{key.PoA("a"), key.PoA("c")}}
	got, err := key.Information(q, ask)
	want := mihf.Information{At: 7, Forgotten: 3, PoAs: []mihf.PoAInformation{{PoA: "a"}, {PoA: "a", Link: "l"}}}
	if err != nil || !cmp.Equal(*got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if len(known.PoAs) != 3 || known.PoAs[1].PoA != "b" {
		t.Error("the broker's own answer was changed")
	}
	if want := []mihf.InformationRequest{{Links: q.Links}}; !cmp.Equal(asked, want) {
		t.Errorf("asked %+v", asked)
	}
	asked = nil
	if _, err := key.Information(mihf.InformationRequest{PoAs: []mihf.PoA{key.PoA("a"), "a"}}, ask); !errors.Is(err, mihf.ErrInvalid) || asked != nil {
		t.Errorf("an id: %v, asked %v", err, asked)
	}
	for name, k := range map[string]*Key{"no key": nil, "nothing named": key} {
		q := mihf.InformationRequest{PoAs: map[string][]mihf.PoA{"no key": {"a"}}[name]}
		asked = nil
		if got, err := k.Information(q, ask); got != &known || err != nil || !cmp.Equal(asked, []mihf.InformationRequest{q}) {
			t.Errorf("%s: %v, %v, asked %+v", name, got, err, asked)
		}
	}
	gone := errors.New("gone")
	if _, err := key.Information(q, func(mihf.InformationRequest) (*mihf.Information, error) { return nil, gone }); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}
