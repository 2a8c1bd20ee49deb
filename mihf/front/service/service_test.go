package service_test

import (
	"context"
	"errors"
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/service"
	mihv1 "mihf.dev/proto/mih/v1"
)

// What makes no sense is refused before the broker is asked: there is none here.
func TestRefusedUnasked(t *testing.T) {
	ctx, who := context.Background(), mihf.Caller{}
	var s service.Service
	for what, err := range map[string]error{
		"link":       second(s.GetParameters(ctx, who, &mihv1.GetParametersRequest{})),
		"thresholds": second(s.ConfigureThresholds(ctx, who, &mihv1.ConfigureThresholdsRequest{Link: "wifi-00000001", Items: []*mihv1.ThresholdConfig{nil}})),
		"prediction": second(s.Explain(ctx, who, &mihv1.ExplainRequest{PredictionId: "x"})),
		"points":     second(s.GetInformation(ctx, who, &mihv1.GetInformationRequest{Links: []string{""}})),
		"flow":       second(service.Register(nil, &mihv1.FlowSpec{Flow: "\xff", Direction: 99})),
		"update":     service.Update(nil, &mihv1.FlowUpdate{}),
		"unregister": service.Unregister(nil, &mihv1.Unregister{}),
		"ack":        service.Acknowledge(nil, &mihv1.Ack{}),
	} {
		if !errors.Is(err, mihf.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func second[A any](_ A, err error) error { return err }
