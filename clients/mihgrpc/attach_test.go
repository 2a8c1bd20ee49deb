package mihgrpc

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"mihf.dev/clients"
	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// pipe is a stream that a test plays by hand.
type pipe struct {
	ctx     context.Context
	replies chan *mihv1.AttachResponse
	sendErr error

	mu   sync.Mutex // guards the following
	sent []*mihv1.AttachRequest
}

func (p *pipe) Send(r *mihv1.AttachRequest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, r)
	return p.sendErr
}

func (p *pipe) Recv() (*mihv1.AttachResponse, error) {
	select {
	case r, ok := <-p.replies:
		if !ok {
			return nil, io.EOF
		}
		return r, nil
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
}

// scene is an attachment over a pipe.
type scene struct {
	*testing.T
	a *attachment
	p *pipe
}

func play(t *testing.T, script func(*scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := &pipe{ctx: ctx, replies: make(chan *mihv1.AttachResponse, 2*maxWaiting)}
		a := newAttachment(ctx, &Client{life: clients.NewLife()}, p, cancel)
		defer a.Close()
		script(&scene{t, a, p})
	})
}

func hint(epoch uint64) *mihv1.AttachResponse {
	return &mihv1.AttachResponse{Response: &mihv1.AttachResponse_Hint{Hint: &mihv1.Hint{
		Flow: "F", Epoch: epoch, Kind: &mihv1.Hint_Unfreeze{Unfreeze: &mihv1.Unfreeze{Cause: 1}},
	}}}
}

func registered(id uint64) *mihv1.AttachResponse {
	return &mihv1.AttachResponse{RequestId: id, Response: &mihv1.AttachResponse_Registered{Registered: &mihv1.Registration{Flow: "F"}}}
}

// Hints that come while only an answer is waited for are not lost, and keep their order.
func TestHintsWaitForTheirReader(t *testing.T) {
	play(t, func(t *scene) {
		a, p := t.a, t.p
		p.replies <- hint(1)
		p.replies <- hint(2)
		p.replies <- registered(1)
		p.replies <- hint(3)
		if reg, err := a.Register(mihf.FlowSpec{}); err != nil || reg.Flow != "F" {
			t.Fatalf("%+v, %v", reg, err)
		}
		buf := make([]mihf.Delivery, 8)
		var got []uint64
		for len(got) < 3 {
			n, err := a.Next(buf)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range buf[:n] {
				got = append(got, d.Hint.Epoch)
			}
		}
		if got[0] != 1 || got[1] != 2 || got[2] != 3 {
			t.Errorf("epochs %v", got)
		}
	})
}

func TestTooManyHintsWait(t *testing.T) {
	play(t, func(t *scene) {
		a, p := t.a, t.p
		for i := range uint64(maxWaiting + 1) {
			p.replies <- hint(i + 1)
		}
		if _, err := a.Register(mihf.FlowSpec{}); !errors.Is(err, mihf.ErrSlow) {
			t.Errorf("%v, want %v", err, mihf.ErrSlow)
		}
	})
}

// One who waits for hints hands an answer to who waits for that.
func TestReaderHandsOverAnswers(t *testing.T) {
	play(t, func(t *scene) {
		a, p := t.a, t.p
		go func() {
			_, _ = a.Next(make([]mihf.Delivery, 1)) // ends with the attachment
		}()
		synctest.Wait()
		ended := make(chan error, 1)
		go func() { ended <- a.Update(mihf.FlowUpdate{Flow: "F"}) }()
		synctest.Wait()
		p.replies <- &mihv1.AttachResponse{RequestId: 1, Response: &mihv1.AttachResponse_Failed{Failed: &mihv1.Failed{
			Reason: mihv1.FailedReason_FAILED_REASON_NOT_FOUND, Text: "not found: flow F",
		}}}
		if err := <-ended; !errors.Is(err, mihf.ErrNotFound) || err.Error() != "not found: flow F" {
			t.Errorf("%v", err)
		}
	})
}

// Answers come to their own requests, whoever reads them.
func TestManyAskAtOnce(t *testing.T) {
	play(t, func(t *scene) {
		a, p := t.a, t.p
		const many = 20
		var asking sync.WaitGroup
		for range many {
			asking.Go(func() {
				if _, err := a.Register(mihf.FlowSpec{}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		for id := range uint64(many) {
			p.replies <- registered(many - id)
		}
		asking.Wait()
	})
}

func TestClose(t *testing.T) {
	play(t, func(t *scene) {
		a := t.a
		ended := make(chan error, 2)
		go func() { _, err := a.Next(make([]mihf.Delivery, 1)); ended <- err }()
		go func() { ended <- a.Unregister("F") }()
		synctest.Wait()
		a.Close()
		a.Close()
		for range 2 {
			if err := <-ended; !errors.Is(err, mihf.ErrClosed) {
				t.Errorf("%v", err)
			}
		}
		if err := a.Acknowledge(mihf.Ack{Flow: "F"}); !errors.Is(err, mihf.ErrClosed) {
			t.Errorf("Acknowledge: %v", err)
		}
	})
}

// A stream that broke says why where it is read.
func TestBrokenStream(t *testing.T) {
	play(t, func(t *scene) {
		a, p := t.a, t.p
		p.sendErr = io.EOF
		p.replies <- hint(1)
		close(p.replies)
		if err := a.Acknowledge(mihf.Ack{Flow: "F"}); !errors.Is(err, mihf.ErrClosed) {
			t.Errorf("%v, want %v", err, mihf.ErrClosed)
		}
	})
}

func TestRefusedAckAndBadHintAreCounted(t *testing.T) {
	play(t, func(t *scene) {
		a, p := t.a, t.p
		p.replies <- &mihv1.AttachResponse{RequestId: 77, Response: &mihv1.AttachResponse_Failed{Failed: &mihv1.Failed{}}}
		p.replies <- &mihv1.AttachResponse{Response: &mihv1.AttachResponse_Hint{Hint: &mihv1.Hint{}}}
		p.replies <- hint(1)
		if _, err := a.Next(make([]mihf.Delivery, 1)); err != nil {
			t.Fatal(err)
		}
		if a.c.RefusedAcks() != 1 || a.c.Skipped() != 1 {
			t.Errorf("%d refused, %d skipped, want 1 each", a.c.RefusedAcks(), a.c.Skipped())
		}
	})
}
