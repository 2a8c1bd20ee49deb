package mihnats

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/natsproto"
)

// lastWord is how long the broker may take to say how many observations were missed.
const lastWord = 2 * time.Second

// maxRecorded bounds the observations that wait to be written.
const maxRecorded = 1 << 14

// Record calls write for each observation that the broker takes. See [clients.Client].
func (c *Client) Record(ctx context.Context, write func(*mihf.Observation) error) (lost uint64, err error) {
	own, cancel := c.life.During(context.WithoutCancel(ctx)) // outlives ctx by the last word
	defer cancel()
	opening, stop := c.limited(ctx)
	defer stop()
	if err := c.connected(opening); err != nil {
		return 0, err
	}
	node, err := c.nodeFor(opening)
	if err != nil {
		return 0, err
	}
	sub, err := c.conn().SubscribeSync(c.conn().NewInbox())
	if err != nil {
		return 0, c.errorOf(opening, err)
	}
	r := recorder{c: c, session: rand.Text(), node: node, sub: sub, write: write}
	defer func() { _ = sub.Unsubscribe() }() // ends with its connection otherwise
	if err := sub.SetPendingLimits(maxRecorded, -1); err != nil {
		return 0, c.errorOf(opening, err)
	}
	l := listener{subs: []*nats.Subscription{sub}, cut: func(error) {}}
	c.listen(&l)
	defer c.forget(&l)
	a := ask{op: natsproto.OpAdmin, method: natsproto.MethodRecord, session: r.session, deliver: sub.Subject, body: &mihv1.RecordRequest{}}
	if _, err := c.call(opening, a, nil); err != nil {
		return 0, err
	}
	return r.run(ctx, own, cancel)
}

// recorder is one recording.
type recorder struct {
	c       *Client
	session string
	node    mihf.NodeID
	sub     *nats.Subscription
	write   func(*mihf.Observation) error
	failed  error // of write
	lost    uint64
}

// run writes until ctx ends or write fails, and then waits for the last word.
func (r *recorder) run(ctx, own context.Context, cancel context.CancelFunc) (uint64, error) {
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		if r.c.keep(own, r.session, ended) != nil {
			cancel()
		}
	}()
	enough := func() {
		r.c.letGo(r.node, r.session)
		time.AfterFunc(lastWord, cancel)
	}
	stop := context.AfterFunc(ctx, enough)
	defer stop()
	for {
		m, err := r.sub.NextMsgWithContext(own)
		if err != nil {
			if dropped, e := r.sub.Dropped(); e == nil {
				r.lost += uint64(dropped) //nolint:gosec // a count
			}
			if r.failed != nil || ctx.Err() != nil {
				return r.lost, r.failed // the last word did not come in time
			}
			return r.lost, r.c.errorOf(own, err)
		}
		last, err := r.take(m)
		if last {
			if dropped, e := r.sub.Dropped(); e == nil {
				r.lost += uint64(dropped) //nolint:gosec // a count
			}
			if r.failed != nil {
				err = r.failed
			}
			return r.lost, err
		}
		if err != nil && stop() {
			enough()
		}
	}
}

// take writes one observation. It returns the error of write, once; last: nothing more
// comes, and why.
func (r *recorder) take(m *nats.Msg) (last bool, err error) {
	h := natsproto.Header(m.Header)
	e, bad := natsproto.ParseEnvelope(h)
	if bad != nil {
		r.c.skipped.Add(1)
		return false, nil //nolint:nilerr // counted; the others go on
	}
	if e.Type == natsproto.TypeEnd {
		if err := natsproto.Refused(h, m.Data); err != nil {
			return true, err
		}
		var p mihv1.RecordResponse
		if proto.Unmarshal(m.Data, &p) == nil {
			r.lost += p.GetLost()
		}
		return true, nil
	}
	if r.failed != nil {
		return false, nil //nolint:nilerr // on its way when we had enough
	}
	var p mihv1.Observation
	if err = proto.Unmarshal(m.Data, &p); err == nil {
		var o mihf.Observation
		if o, err = r.c.decoder(&e).Observation(&p); err == nil {
			r.failed = r.write(&o)
			return false, r.failed
		}
	}
	r.c.skipped.Add(1)
	r.lost++
	return false, nil
}
