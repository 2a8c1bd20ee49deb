package natsfront

import (
	"sync"

	"github.com/nats-io/nats.go"

	"mihf.dev/mihf"
)

// job is a request and who sent it.
type job struct {
	who   mihf.Caller
	inbox string // the user whose inboxes it may name; "": any
	op    string
	msg   *nats.Msg
	size  int // of msg, in octets
}

// queue holds the requests that wait. Callers take turns, and the requests of one are done
// in order, one at a time. It has room for a bounded number of each caller and of all.
type queue struct {
	limit int // of one caller

	mu      sync.Mutex // guards the following
	ready   *sync.Cond // there is a caller to serve, or the queue is closed
	callers map[string]*line
	turns   []*line // that have a request, and none being done
	waiting int
	octets  int // of the requests that wait
	closed  bool
}

// line is what one caller has waiting.
type line struct {
	name    string
	jobs    []job
	octets  int // of the requests in it
	serving bool
}

// Bounds of what waits: the requests of all callers together, and the octets of one caller's
// and of all.
const (
	maxWaiting        = 8192
	maxOctets         = 16 << 20
	maxOctetsOfCaller = 1 << 20
)

func newQueue(limit int) *queue {
	q := &queue{limit: limit, callers: map[string]*line{}}
	q.ready = sync.NewCond(&q.mu)
	return q
}

// add takes a request; false: there is no room for it.
func (q *queue) add(j job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.callers[j.who.Name]
	if q.closed || q.waiting >= maxWaiting || q.octets+j.size > maxOctets {
		return false
	}
	if l != nil && (len(l.jobs) >= q.limit || l.octets+j.size > maxOctetsOfCaller) {
		return false
	}
	if l == nil {
		l = &line{name: j.who.Name}
		q.callers[l.name] = l
	}
	l.jobs = append(l.jobs, j)
	l.octets += j.size
	q.octets += j.size
	q.waiting++
	if len(l.jobs) == 1 && !l.serving {
		q.turns = append(q.turns, l)
		q.ready.Signal()
	}
	return true
}

// serve does requests until the queue is closed; what waits then is not done.
func (q *queue) serve(do func(*job)) {
	for {
		l, j, ok := q.take()
		if !ok {
			return
		}
		do(&j)
		q.done(l)
	}
}

// take waits for the caller whose turn it is.
func (q *queue) take() (l *line, j job, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.turns) == 0 && !q.closed {
		q.ready.Wait()
	}
	if q.closed {
		return nil, j, false
	}
	l = q.turns[0]
	q.turns = q.turns[1:]
	j = l.jobs[0]
	l.jobs[0] = job{} // what it held is not kept
	l.jobs = l.jobs[1:]
	l.serving = true
	l.octets -= j.size
	q.octets -= j.size
	q.waiting--
	return l, j, true
}

// done lets the caller have another turn, or forgets it.
func (q *queue) done(l *line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.serving = false
	if len(l.jobs) == 0 {
		delete(q.callers, l.name)
		return
	}
	q.turns = append(q.turns, l)
	q.ready.Signal()
}

// close ends serve.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.ready.Broadcast()
}
