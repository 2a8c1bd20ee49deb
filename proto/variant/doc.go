// Package variant turns messages of mih.v1 into D-Bus dictionaries (a{sv}) and back. It is
// the one marshalling of everything that passes over D-Bus.
//
// # The rules
//
//   - A key is the field's name. What is absent in the message has no key: an unset optional
//     field, an empty list or string, a 0 or false that is not optional.
//   - Numbers and booleans are b, i, u, x, t and d by their type (float is d), strings s,
//     octets ay, messages a{sv}, lists of them as, ad, aa{sv} and so on.
//   - A google.protobuf.Duration is an x of nanoseconds and its key ends in _ns. A Timestamp
//     is an x of nanoseconds since 1970 and its key ends in _unix_ns.
//   - An enumeration is its value's name in lower case without the type's: FREEZE_REASON_LINK_DOWN
//     is "link_down". A value that has no name is its number.
//   - Beside octets there is a string for people, as [mihf.Escape] shows them; its key ends in
//     _text. A dictionary that has only that is taken by it.
//
// # Guarantees
//
//   - [Decode] of what [Encode] gave is equal to the message, but for the limits below.
//   - What Encode returns can always be sent: every string is valid UTF-8 without NUL.
//   - Decoding never panics, whatever the dictionary holds. An error wraps mihf.ErrInvalid and
//     names the key, what is there and what is wanted.
//   - Where a whole number is wanted every integer type will do that holds a value in range;
//     where a d is wanted, integers too.
//
// # Limits
//
// A string that D-Bus cannot carry passes as [mihf.EscapeString] shows it. Durations and
// times beyond 292 years are cut to that; an enumeration's name that is not known becomes
// the number -1. Maps and groups do not exist in mih.v1.
package variant
