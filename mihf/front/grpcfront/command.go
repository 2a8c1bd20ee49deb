package grpcfront

import (
	"context"

	"google.golang.org/grpc"

	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
)

// GetParameters sends the newest values of a link (Link_Get_Parameters).
func (s *Server) GetParameters(ctx context.Context, req *mihv1.GetParametersRequest) (*mihv1.GetParametersResponse, error) {
	link, err := conv.DecodeLink(req.GetLink())
	if err != nil {
		return nil, statusOf(err)
	}
	l, err := s.broker.Parameters(ctx, callerOf(ctx), link)
	if err != nil {
		return nil, statusOf(err)
	}
	return &mihv1.GetParametersResponse{Status: s.forms(ctx).Encoder().LinkStatus(&l)}, nil
}

// GetInformation sends what is known of points of attachment (MIH_Get_Information).
func (s *Server) GetInformation(ctx context.Context, req *mihv1.GetInformationRequest) (*mihv1.GetInformationResponse, error) {
	q, err := conv.DecodeInformationRequest(req)
	if err != nil {
		return nil, statusOf(err)
	}
	forms := s.forms(ctx)
	i, err := forms.Key().Information(q, func(q mihf.InformationRequest) (*mihf.Information, error) {
		return s.broker.Information(ctx, callerOf(ctx), q)
	})
	if err != nil {
		return nil, statusOf(err)
	}
	return forms.Encoder().Information(i), nil
}

// ConfigureThresholds applies all items or none (Link_Configure_Thresholds).
func (s *Server) ConfigureThresholds(ctx context.Context, req *mihv1.ConfigureThresholdsRequest) (*mihv1.ConfigureThresholdsResponse, error) {
	link, err := conv.DecodeLink(req.GetLink())
	if err != nil {
		return nil, statusOf(err)
	}
	items, err := conv.DecodeThresholds(req.GetItems())
	if err != nil {
		return nil, statusOf(err)
	}
	if err := s.broker.ConfigureThresholds(ctx, callerOf(ctx), link, items); err != nil {
		return nil, statusOf(err)
	}
	return &mihv1.ConfigureThresholdsResponse{}, nil
}

// Status sends counts and conditions.
func (s *Server) Status(ctx context.Context, _ *mihv1.StatusRequest) (*mihv1.StatusResponse, error) {
	st, err := s.broker.Status(ctx, callerOf(ctx))
	if err != nil {
		return nil, statusOf(err)
	}
	return conv.EncodeStatus(&st), nil
}

// Explain tells why a prediction was announced.
func (s *Server) Explain(ctx context.Context, req *mihv1.ExplainRequest) (*mihv1.ExplainResponse, error) {
	id, err := conv.DecodePredictionID(req.GetPredictionId())
	if err != nil {
		return nil, statusOf(err)
	}
	x, err := s.broker.Explain(ctx, callerOf(ctx), id)
	if err != nil {
		return nil, statusOf(err)
	}
	return s.forms(ctx).Encoder().Explanation(x), nil
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
