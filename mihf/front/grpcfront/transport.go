package grpcfront

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/encoded"
	"mihf.dev/mihf/front/service"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
)

type attachStream = grpc.BidiStreamingServer[mihv1.AttachRequest, mihv1.AttachResponse]

// attached is one Attach stream: its handler sends hints, a second goroutine reads
// requests and answers them.
type attached struct {
	s      *Server
	at     mihf.Attachment
	stream attachStream
	forms  *encoded.Events
	mu     sync.Mutex // held while writing, and from a registration to its answer
}

// Attach joins a transport to the broker. The end of its requests ends its flows.
func (s *Server) Attach(stream attachStream) error {
	at, err := s.broker.Attach(stream.Context(), callerOf(stream.Context()))
	if err != nil {
		return statusOf(err)
	}
	defer at.Close()
	if err := stream.SendHeader(nil); err != nil { // tells the client that it was taken
		return err
	}
	a := &attached{s: s, at: at, stream: stream, forms: s.forms(stream.Context())}
	ended := make(chan struct{})
	s.readers.Go(func() { // ends with the stream, at the latest when this handler returns
		defer at.Close() // wakes the handler
		defer close(ended)
		a.requests()
	})
	err = a.hints()
	select {
	case <-ended: // the client was done
		return nil
	default:
		return err
	}
}

func (a *attached) hints() error {
	buf := make([]mihf.Delivery, batch)
	for {
		n, err := a.at.Next(buf)
		if err != nil {
			return statusOf(err)
		}
		for i := range buf[:n] {
			if err := a.deliver(&buf[i]); err != nil {
				return err
			}
		}
	}
}

func (a *attached) deliver(d *mihf.Delivery) error {
	p := &mihv1.AttachResponse{Previous: d.Previous}
	switch d.Kind {
	case mihf.DeliverHint:
		p.Response = &mihv1.AttachResponse_Hint{Hint: a.forms.HintEncoder(a.s.broker.Now()).Hint(&d.Hint)}
	case mihf.DeliverGap:
		p.Response = &mihv1.AttachResponse_Gap{Gap: conv.EncodeGap(&d.Gap)}
	default:
		return nil // an attachment has nothing else
	}
	a.s.counts.sent.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stream.Send(p)
}

// requests does what the client asks for, in order, until it is done or gone.
func (a *attached) requests() {
	for {
		req, err := a.stream.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				a.s.log.Debug("attached client gone", "error", err)
			}
			return
		}
		if err := a.request(req); err != nil {
			return // the stream is broken: its handler sees it too
		}
	}
}

// request does one request and answers it. A registration's answer goes out before any
// hint of its flow can.
func (a *attached) request(req *mihv1.AttachRequest) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.s.recovered("Attach request", &err)
	p, err := a.answer(req)
	if errors.Is(err, mihf.ErrInvalid) {
		a.s.malformed(mihv1.TransportService_Attach_FullMethodName, err)
	}
	if err != nil {
		p = &mihv1.AttachResponse{Response: &mihv1.AttachResponse_Failed{Failed: failedOf(err)}}
	}
	if p == nil {
		return nil
	}
	p.RequestId = req.GetRequestId()
	return a.stream.Send(p)
}

// answer returns what to send, or nil for nothing.
func (a *attached) answer(req *mihv1.AttachRequest) (*mihv1.AttachResponse, error) {
	switch r := req.GetRequest().(type) {
	case *mihv1.AttachRequest_Register:
		reg, err := service.Register(a.at, r.Register)
		return &mihv1.AttachResponse{Response: &mihv1.AttachResponse_Registered{Registered: reg}}, err
	case *mihv1.AttachRequest_Update:
		return done(service.Update(a.at, r.Update))
	case *mihv1.AttachRequest_Unregister:
		return done(service.Unregister(a.at, r.Unregister))
	case *mihv1.AttachRequest_Ack:
		return nil, service.Acknowledge(a.at, r.Ack)
	default:
		return nil, fmt.Errorf("%w: request %d asks for nothing that this version knows", mihf.ErrInvalid, req.GetRequestId())
	}
}

func done(err error) (*mihv1.AttachResponse, error) {
	return &mihv1.AttachResponse{Response: &mihv1.AttachResponse_Done{Done: &mihv1.Done{}}}, err
}
