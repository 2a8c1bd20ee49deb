package kernel

// Keeper remembers what windows connections had while their path carried, and makes the
// orders by which they go on when it carries again. It is used by one goroutine.
type Keeper struct{ healthy map[uint64]window }

type window struct {
	cwnd     uint32
	lostOut  uint32
	progress uint64 // octets, both ways
}

// Note takes the connections as they are while their path carries. A connection whose
// window has fallen by a loss of these moments keeps the larger one it had before, until
// it has moved data again. What is not among them any more is forgotten.
func (k *Keeper) Note(sockets []Socket) {
	next := make(map[uint64]window, len(sockets))
	for i := range sockets {
		s := &sockets[i]
		now := window{s.Cwnd, s.LostOut, s.BytesAcked + s.BytesReceived}
		if was, ok := k.healthy[s.Cookie]; ok && (s.LostOut > 0 || now.progress == was.progress) {
			now.cwnd = max(now.cwnd, was.cwnd)
		}
		next[s.Cookie] = now
	}
	k.healthy = next
}

// Recover returns the orders for connections whose path carries again: who waits for an
// acknowledgement sends new data within the window it had, which shows its peer what is
// missing; who waits for data says what it has, which shows its sender the same. cwnd of
// what was never noted stays.
func (k *Keeper) Recover(sockets []Socket) []Order {
	var out []Order
	for i := range sockets {
		s := &sockets[i]
		if s.PacketsOut == 0 {
			out = append(out, Order{Cookie: s.Cookie, Acks: 1})
			continue
		}
		was := k.healthy[s.Cookie].cwnd
		out = append(out, Order{Cookie: s.Cookie, Cwnd: was, Ssthresh: was, Acks: 1, Push: true})
	}
	return out
}
