// Package natsproto is how mih.v1 lies over NATS: subjects, headers, and what a refusal
// looks like. The front and the client both stand on it.
//
// # Guarantees
//
//   - A subject that it makes is one that NATS takes, whatever octets the names have, and
//     has the number of tokens that its pattern says; [ParseSubject] gives the names back.
//   - What a message's headers say is read strictly: a value that makes no sense, or that is
//     there twice, is an error that wraps mihf.ErrInvalid and names the header.
//   - A refusal gives back the error of the vocabulary that it was made of.
//
// It is pure. docs/nats.md has the table that it implements.
package natsproto
