// Package service answers the requests of mih.v1 by a broker, alike for every front: a front
// reads the request, says who asks, and sends the answer.
//
// # Guarantees
//
//   - A request that makes no sense is refused with mihf.ErrInvalid before the broker is asked;
//     every other refusal is the broker's own.
//   - Answers name points of attachment as the front's listeners are told them (Key, Encoder).
//
// It keeps nothing and may be used by any goroutine.
package service

import (
	"context"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front"
	"mihf.dev/mihf/front/encoded"
	"mihf.dev/mihf/front/pseudonym"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
)

// Service is a broker as one kind of listener is told of it.
type Service struct {
	Broker  front.Broker
	Encoder func() conv.Encoder // of messages that are sent now
	Key     *pseudonym.Key      // of points of attachment; nil: they have their own names
}

// Of returns the service whose answers are encoded as the events of the store are.
func Of[T any](b front.Broker, forms *encoded.Forms[T]) Service {
	return Service{Broker: b, Encoder: forms.Encoder, Key: forms.Key()}
}

// GetSnapshot returns the state that the caller may see.
func (s Service) GetSnapshot(ctx context.Context, who mihf.Caller, _ *mihv1.GetSnapshotRequest) (*mihv1.GetSnapshotResponse, error) {
	snap, err := s.Broker.Snapshot(ctx, who)
	if err != nil {
		return nil, err
	}
	return &mihv1.GetSnapshotResponse{Snapshot: s.Encoder().Snapshot(snap)}, nil
}

// GetParameters returns the newest values of a link (Link_Get_Parameters).
func (s Service) GetParameters(ctx context.Context, who mihf.Caller, req *mihv1.GetParametersRequest) (*mihv1.GetParametersResponse, error) {
	link, err := conv.DecodeLink(req.GetLink())
	if err != nil {
		return nil, err
	}
	l, err := s.Broker.Parameters(ctx, who, link)
	if err != nil {
		return nil, err
	}
	return &mihv1.GetParametersResponse{Status: s.Encoder().LinkStatus(&l)}, nil
}

// ConfigureThresholds applies all items or none (Link_Configure_Thresholds).
func (s Service) ConfigureThresholds(ctx context.Context, who mihf.Caller, req *mihv1.ConfigureThresholdsRequest) (*mihv1.ConfigureThresholdsResponse, error) {
	link, err := conv.DecodeLink(req.GetLink())
	if err != nil {
		return nil, err
	}
	items, err := conv.DecodeThresholds(req.GetItems())
	if err != nil {
		return nil, err
	}
	if err := s.Broker.ConfigureThresholds(ctx, who, link, items); err != nil {
		return nil, err
	}
	return &mihv1.ConfigureThresholdsResponse{}, nil
}

// GetInformation returns what is known of points of attachment (MIH_Get_Information).
func (s Service) GetInformation(ctx context.Context, who mihf.Caller, req *mihv1.GetInformationRequest) (*mihv1.GetInformationResponse, error) {
	q, err := conv.DecodeInformationRequest(req)
	if err != nil {
		return nil, err
	}
	i, err := s.Key.Information(q, func(q mihf.InformationRequest) (*mihf.Information, error) {
		return s.Broker.Information(ctx, who, q)
	})
	if err != nil {
		return nil, err
	}
	return s.Encoder().Information(i), nil
}

// Status returns counts and conditions.
func (s Service) Status(ctx context.Context, who mihf.Caller, _ *mihv1.StatusRequest) (*mihv1.StatusResponse, error) {
	st, err := s.Broker.Status(ctx, who)
	if err != nil {
		return nil, err
	}
	return conv.EncodeStatus(&st), nil
}

// Explain tells why a prediction was announced.
func (s Service) Explain(ctx context.Context, who mihf.Caller, req *mihv1.ExplainRequest) (*mihv1.ExplainResponse, error) {
	id, err := conv.DecodePredictionID(req.GetPredictionId())
	if err != nil {
		return nil, err
	}
	x, err := s.Broker.Explain(ctx, who, id)
	if err != nil {
		return nil, err
	}
	return s.Encoder().Explanation(x), nil
}
