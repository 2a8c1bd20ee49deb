package tfrc

const (
	// historyLength is n of RFC 5348, section 5.4: the closed loss intervals that count.
	historyLength = 8
	// dupThreshold is NDUPACK of section 5.1: so many later packets make a hole a loss.
	dupThreshold = 3
	// discountFloor is the THRESHOLD of section 5.5.
	discountFloor = 0.25
)

// weights are w_0 to w_7 of RFC 5348, section 5.4, newest first.
var weights = [historyLength]float64{1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2}

// allWeights is the sum of the weights: W.
const allWeights = 6.0

// meanInterval is the average loss interval of RFC 5348, section 5.4. lengths holds the
// current interval and after it up to n closed ones, newest first, at least one of them.
func meanInterval(lengths []float64) float64 {
	k := min(len(lengths)-1, historyLength)
	var total0, total1, weight float64
	for i := range k {
		total0 += float64(lengths[i] * weights[i])
		total1 += float64(lengths[i+1] * weights[i])
		weight += weights[i]
	}
	return max(total0, total1) / weight
}

// An event is a loss event with the loss interval that it began.
type event struct {
	start   uint64 // first lost or marked packet
	lossEnd uint64 // one behind the last lost or marked packet
	at      int64  // nominal arrival of start, in nanoseconds (RFC5348)
	counter int64  // unwrapped window counter of the packet before start (CCID3)
	lost    uint64 // packets lost or marked
	nonData uint32 // packets without data from start on
	length  float64
	// discount is DF_i of RFC 5348, section 5.5; 1 without discounting.
	discount float64
	// synthetic says that length stands for a rate and is no count of packets.
	synthetic bool
}

// history is the loss event record: the current interval and the n closed ones before it.
// events[0] is the current one.
type history struct {
	events [historyLength + 1]event
	n      int
	first  uint64 // first sequence number of the connection
}

// begin closes the current interval at start and begins the next. The first event needs
// the synthetic length of the interval before it (RFC 5348, section 6.3.1).
func (h *history) begin(e event, firstLength float64) {
	e.discount = 1
	if h.n == 0 {
		h.events[1] = event{start: h.first, lossEnd: h.first, length: firstLength, synthetic: true, discount: 1}
		h.events[0] = e
		h.n = 2
		return
	}
	h.close(e.start, e.nonData)
	copy(h.events[1:], h.events[:])
	h.events[0] = e
	h.n = min(h.n+1, len(h.events))
}

// close fixes the length of the current interval, which ends before next; laterNonData
// packets without data, already counted, belong to the next one.
func (h *history) close(next uint64, laterNonData uint32) {
	cur := &h.events[0]
	cur.nonData -= min(cur.nonData, laterNonData)
	cur.length = cur.dataLength(next)
}

// dataLength is the number of data packets from the event's start to end, at least 1.
func (e *event) dataLength(end uint64) float64 {
	return max(float64(end-e.start)-float64(e.nonData), 1)
}

// lengths writes the interval lengths, newest first, and returns them.
func (h *history) lengths(into *[historyLength + 1]float64, highest uint64) []float64 {
	if h.n == 0 {
		return nil
	}
	into[0] = h.events[0].dataLength(highest + 1)
	for i := 1; i < h.n; i++ {
		into[i] = h.events[i].length
	}
	return into[:h.n]
}

// lossRate is p for the greatest sequence number received.
func (h *history) lossRate(highest uint64, discounting bool) float64 {
	var buf [historyLength + 1]float64
	lengths := h.lengths(&buf, highest)
	if lengths == nil {
		return 0
	}
	if discounting {
		return h.discounted(lengths)
	}
	return min(1/meanInterval(lengths), 1)
}

// general is the general discount factor DF of RFC 5348, section 5.5.
func (h *history) general(lengths []float64) float64 {
	var total, weight float64
	for i := 1; i < len(lengths) && i <= historyLength; i++ {
		w := weights[i-1] * h.events[i].discount
		weight += w
		total += float64(lengths[i] * w)
	}
	mean := total / weight
	if lengths[0] <= 2*mean {
		return 1
	}
	return max(2*mean/lengths[0], discountFloor)
}

// discounted is p with history discounting (RFC 5348, section 5.5).
func (h *history) discounted(lengths []float64) float64 {
	df := h.general(lengths)
	k := min(len(lengths)-1, historyLength)
	total0, weight0 := lengths[0]*weights[0], weights[0]
	var total1, weight1 float64
	for i := 1; i <= k; i++ {
		if i < k {
			w := weights[i] * h.events[i].discount * df
			total0 += float64(lengths[i] * w)
			weight0 += w
		}
		w := weights[i-1] * h.events[i].discount
		total1 += float64(lengths[i] * w)
		weight1 += w
	}
	return min(weight0/total0, weight1/total1, 1)
}

// discount takes DF into the closed intervals, before the current one is closed.
func (h *history) discount(highest uint64) {
	var buf [historyLength + 1]float64
	lengths := h.lengths(&buf, highest)
	if lengths == nil {
		return
	}
	df := h.general(lengths)
	for i := 1; i < h.n; i++ {
		h.events[i].discount *= df
	}
}

// fill takes one lost packet of event i back. An event that has none left is removed and
// its interval joined to the one before it; fill reports whether that happened.
func (h *history) fill(i int) bool {
	e := &h.events[i]
	e.lost -= min(e.lost, 1)
	if e.lost > 0 || i == h.n-1 {
		return false
	}
	before := &h.events[i+1]
	switch {
	case !before.synthetic:
		before.length += e.length
		before.nonData += e.nonData
	case h.n == 2: // the only event: nothing was lost after all
		h.n = 0
		return true
	case i == 0: // the current interval is a count of packets, the one before is not
		return false
	}
	copy(h.events[i:], h.events[i+1:])
	h.n--
	return true
}

// containing is the index of the event whose interval holds seq; -1 for none.
func (h *history) containing(seq uint64) int {
	for i := range h.n {
		if h.events[i].start <= seq {
			return i
		}
	}
	return -1
}

// reset makes all closed intervals the given length: what the sender probed for has
// nothing to do with what was lost before.
func (h *history) reset(length float64) {
	for i := 1; i < len(h.events); i++ {
		if i >= h.n {
			h.events[i] = event{start: h.first, lossEnd: h.first}
		}
		h.events[i].length = max(length, 1)
		h.events[i].synthetic = true
		h.events[i].discount = 1
	}
	h.n = len(h.events)
}
