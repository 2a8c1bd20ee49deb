// Package conv converts between the vocabulary and the protocol mih.v1, both ways.
//
// # Guarantees
//
//   - It is pure: the moment of sending or arrival comes in as a value.
//   - A message carries no moments. An [Encoder] turns each into a duration from its
//     Now; a [Decoder] counts back from the arrival, less the time the message was held.
//     What was encoded at one moment and decoded at the same is equal to the original.
//   - What is not known is absent. A number that is not finite never passes, in either
//     direction: the encoder leaves it out, the decoder refuses it.
//   - Every string is valid UTF-8: one that is not passes as [mihf.EscapeString] shows it.
//   - Kinds, parameters and reasons in an answer that a newer broker added are passed over
//     or unknown; the rest of the message is read.
//   - A decoder never panics. It returns an error that wraps [mihf.ErrInvalid] and names
//     the field and what is wrong with it.
//
// # Limits
//
// A [mihf.Hint]'s Owner is not sent. Characteristics in seconds pass as nanoseconds. The
// identifiers in a client's requests are checked for form, not for existence.
package conv
