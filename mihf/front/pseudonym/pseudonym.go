// Package pseudonym replaces the ids of points of attachment, which say where a host is, by
// keyed hashes.
//
// # Guarantees
//
//   - With one key an id always gives the same pseudonym, so that what was learned of a point of
//     attachment can be put together without knowing which it is.
//   - Without the key a pseudonym does not give the id, not even by trying all of them: BSSIDs
//     and cell ids are few enough for that.
//
// # Limits
//
// Who knows at what time a host was at a point of attachment can tell its pseudonym. SSIDs are
// not replaced. Two ids share a pseudonym by chance once in about 2^32 points of attachment.
//
// Pure: no I/O, no clock. A [Key] may be used by any goroutine.
package pseudonym

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"mihf.dev/mihf"
)

// KeySize is the length of a key, in octets.
const KeySize = 32

// Key is what pseudonyms are made with: random octets, which only those know who make the same
// ones. No key (nil) leaves ids as they are.
type Key [KeySize]byte

// A pseudonym is prefix and digits of the hash.
const (
	prefix = "poa-"
	octets = 8 // of the hash that are kept
)

// PoA returns the pseudonym of an id; that of none ("") is none.
func (k *Key) PoA(p mihf.PoA) mihf.PoA {
	if k == nil || p == "" {
		return p
	}
	h := hmac.New(sha256.New, k[:])
	h.Write([]byte(p))
	var sum [sha256.Size]byte
	var out [len(prefix) + 2*octets]byte
	copy(out[:], prefix)
	hex.Encode(out[len(prefix):], h.Sum(sum[:0])[:octets])
	return mihf.PoA(out[:])
}

// Valid reports whether p has the form of a pseudonym.
func Valid(p mihf.PoA) bool {
	digits, found := strings.CutPrefix(string(p), prefix)
	return found && len(digits) == 2*octets && strings.Trim(digits, "0123456789abcdef") == ""
}

// Information has a question answered by ask whose points of attachment are named by their
// pseudonyms. The answer has their own ids: who encodes it replaces them. A name that is no
// pseudonym is refused, so that nobody can try ids; the error wraps [mihf.ErrInvalid].
func (k *Key) Information(q mihf.InformationRequest, ask func(mihf.InformationRequest) (*mihf.Information, error)) (*mihf.Information, error) {
	if k == nil || len(q.PoAs) == 0 {
		return ask(q)
	}
	for _, p := range q.PoAs {
		if !Valid(p) {
			return nil, fmt.Errorf("%w: %.64q: from other hosts points of attachment are named as they are told to them: %s and %d hexadecimal digits; see [privacy] poa_ids", mihf.ErrInvalid, string(p), prefix, 2*octets)
		}
	}
	wanted := q.PoAs
	q.PoAs = nil
	i, err := ask(q)
	if err != nil {
		return nil, err
	}
	out := *i
	out.PoAs = slices.DeleteFunc(slices.Clone(i.PoAs), func(a mihf.PoAInformation) bool { return !slices.Contains(wanted, k.PoA(a.PoA)) })
	return &out, nil
}
