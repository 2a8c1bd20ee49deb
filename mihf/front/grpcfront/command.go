package grpcfront

import (
	"context"

	"google.golang.org/grpc"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/service"
	mihv1 "mihf.dev/proto/mih/v1"
)

// service answers requests as the connection's listeners are told.
func (s *Server) service(ctx context.Context) service.Service {
	return service.Of(s.broker, s.forms(ctx))
}

// answered gives an answer, or a refusal as a status.
func answered[A any](a A, err error) (A, error) {
	if err != nil {
		var none A
		return none, statusOf(err)
	}
	return a, nil
}

// GetParameters sends the newest values of a link (Link_Get_Parameters).
func (s *Server) GetParameters(ctx context.Context, req *mihv1.GetParametersRequest) (*mihv1.GetParametersResponse, error) {
	return answered(s.service(ctx).GetParameters(ctx, callerOf(ctx), req))
}

// GetInformation sends what is known of points of attachment (MIH_Get_Information).
func (s *Server) GetInformation(ctx context.Context, req *mihv1.GetInformationRequest) (*mihv1.GetInformationResponse, error) {
	return answered(s.service(ctx).GetInformation(ctx, callerOf(ctx), req))
}

// ConfigureThresholds applies all items or none (Link_Configure_Thresholds).
func (s *Server) ConfigureThresholds(ctx context.Context, req *mihv1.ConfigureThresholdsRequest) (*mihv1.ConfigureThresholdsResponse, error) {
	return answered(s.service(ctx).ConfigureThresholds(ctx, callerOf(ctx), req))
}

// Status sends counts and conditions.
func (s *Server) Status(ctx context.Context, req *mihv1.StatusRequest) (*mihv1.StatusResponse, error) {
	return answered(s.service(ctx).Status(ctx, callerOf(ctx), req))
}

// Explain tells why a prediction was announced.
func (s *Server) Explain(ctx context.Context, req *mihv1.ExplainRequest) (*mihv1.ExplainResponse, error) {
	return answered(s.service(ctx).Explain(ctx, callerOf(ctx), req))
}

// Record sends observations until the client is done, and then how many it missed.
func (s *Server) Record(stream grpc.BidiStreamingServer[mihv1.RecordRequest, mihv1.RecordResponse]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	s.readers.Go(func() { // ends with the stream, at the latest when this handler returns
		defer cancel()
		for {
			if _, err := stream.Recv(); err != nil {
				return
			}
		}
	})
	forms := s.forms(ctx)
	lost, err := s.broker.Record(ctx, callerOf(ctx), func(o *mihf.Observation) error {
		s.counts.sent.Add(1)
		return stream.Send(&mihv1.RecordResponse{Item: &mihv1.RecordResponse_Observation{Observation: forms.Encoder().Observation(o)}})
	})
	if err != nil && ctx.Err() == nil {
		return statusOf(err)
	}
	return stream.Send(&mihv1.RecordResponse{Item: &mihv1.RecordResponse_Lost{Lost: lost}})
}
