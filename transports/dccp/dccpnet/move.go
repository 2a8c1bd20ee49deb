package dccpnet

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// A move is how an end tells the other that it has another address, and how the other
// makes sure of it. It travels in a packet of DCCP's experimental type 14, which others
// ignore:
//
//	generic header 16 | kind 1 | id 8 | counter 8 | nonce 8 | code 16
//
// The id is of the connection at the receiver, the code authenticates everything else and
// the ports by the key that both ends agreed on at set-up. All kinds have one length, so
// that nobody can have more sent to a third than he sends himself.
type move struct {
	kind    moveKind
	id      [8]byte
	counter uint64  // rises with each move of a sender
	nonce   [8]byte // of a challenge, and of its answer
}

type moveKind uint8

const (
	moveStart     moveKind = iota + 1 // here I am now
	moveChallenge                     // are you there? send back the nonce
	moveAnswer
	moveDone // I send to you there from now on
)

const (
	typeMove   = 14
	moveHeader = 16
	moveCode   = 16
	moveBytes  = moveHeader + 1 + 8 + 8 + 8 + moveCode
)

// pathKey is what both ends derive from their keys.
type pathKey [sha256.Size]byte

// tag is a code over some parts, for a purpose.
func (k *pathKey) tag(purpose string, parts ...[]byte) [sha256.Size]byte {
	h := hmac.New(sha256.New, k[:])
	h.Write([]byte(purpose))
	for _, p := range parts {
		h.Write(p)
	}
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return sum
}

// id is the connection's name at one of its ends.
func (k *pathKey) id(server bool) (id [8]byte) {
	sum := k.tag(map[bool]string{true: "server", false: "client"}[server])
	copy(id[:], sum[:])
	return id
}

// append appends the packet of a move from one port to the other.
func (m *move) append(b []byte, k *pathKey, srcPort, dstPort uint16) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint16(b, srcPort)
	b = binary.BigEndian.AppendUint16(b, dstPort)
	b = append(b, moveHeader/4, 0, 0, 0, typeMove<<1|1, 0)
	b = append(b, 0, 0, 0, 0, 0, 0) // no place in the sequence of packets
	b = append(b, byte(m.kind))
	b = append(b, m.id[:]...)
	b = binary.BigEndian.AppendUint64(b, m.counter)
	b = append(b, m.nonce[:]...)
	sum := k.tag("move", b[start:])
	return append(b, sum[:moveCode]...)
}

// isMove reports whether a packet is a move by its form.
func isMove(b []byte) bool {
	return len(b) == moveBytes && b[8]>>1&15 == typeMove && b[4] == moveHeader/4
}

// parseMove reads a move, whose code is not checked.
func parseMove(b []byte) (m move) {
	b = b[moveHeader:]
	m.kind = moveKind(b[0])
	copy(m.id[:], b[1:])
	m.counter = binary.BigEndian.Uint64(b[9:])
	copy(m.nonce[:], b[17:])
	return m
}

// genuine checks the code of a move.
func (k *pathKey) genuine(b []byte) bool {
	n := len(b) - moveCode
	sum := k.tag("move", b[:n])
	return hmac.Equal(sum[:moveCode], b[n:])
}
