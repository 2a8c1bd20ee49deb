// Package info is the information store of one broker run: what each link has heard of
// points of attachment, and when it was attached to them (Media Independent Information
// Service, IEEE 802.21 clause 6.5).
//
// # Guarantees
//
//   - It is bounded. Where there is no room, the point of attachment that was heard least
//     lately goes, and is counted; one that a link is attached to is not given up for one
//     that is only heard.
//   - An id or a network's name that is longer than such a thing can be is not kept, and is
//     counted.
//   - A reading is the newest of its parameter by the moment when it was true, whatever
//     order readings come in, and keeps that moment.
//   - What was given to it is not changed, and what it answers shares nothing that changes
//     later.
//   - What is known already is brought up to date without an allocation.
//
// # Limits
//
// It is used by one goroutine. It forgets everything with the broker's run, and knows what
// sensors told it, nothing else. A link that names no point of attachment, as a cable, is
// not in it.
package info
