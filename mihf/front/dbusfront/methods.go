package dbusfront

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"google.golang.org/protobuf/proto"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/broadcast"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/variant"
)

// dict gives an answer of the service as a dictionary.
func dict(m proto.Message, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return give(variant.Encode(m))
}

func (p *peer) getSnapshot(who mihf.Caller, _ []any) (answer, error) {
	r, err := p.b.s.service.GetSnapshot(p.ctx, who, nil)
	return dict(r.GetSnapshot(), err)
}

// subscription reads the argument of Subscribe and Resume.
func subscription(arg any) (mihf.SubscribeRequest, error) {
	var req mihv1.SubscribeRequest
	if err := variant.DecodeRequest(dictOf(arg), &req); err != nil {
		return mihf.SubscribeRequest{}, err
	}
	return conv.DecodeSubscribe(&req)
}

// resume gives a listener to the broadcast what it missed.
func (p *peer) resume(who mihf.Caller, args []any) (answer, error) {
	q, err := subscription(args[0])
	if err != nil {
		return answer{}, err
	}
	deliveries := []variant.Dict{}
	reached, err := broadcast.CatchUp(p.ctx, p.b.s.o.Broker, who, q, func(d *mihf.Delivery) error {
		deliveries = append(deliveries, p.b.s.delivery(d))
		return nil
	})
	if err != nil {
		return answer{}, err
	}
	return give(deliveries, reached.Boot.String(), reached.Sequence)
}

func (p *peer) getParameters(who mihf.Caller, args []any) (answer, error) {
	r, err := p.b.s.service.GetParameters(p.ctx, who, &mihv1.GetParametersRequest{Link: args[0].(string)})
	return dict(r.GetStatus(), err)
}

func (p *peer) getInformation(who mihf.Caller, args []any) (answer, error) {
	var req mihv1.GetInformationRequest
	if err := variant.DecodeRequest(dictOf(args[0]), &req); err != nil {
		return answer{}, err
	}
	r, err := p.b.s.service.GetInformation(p.ctx, who, &req)
	return dict(r, err)
}

func (p *peer) status(who mihf.Caller, _ []any) (answer, error) {
	r, err := p.b.s.service.Status(p.ctx, who, nil)
	return dict(r, err)
}

func (p *peer) explain(who mihf.Caller, args []any) (answer, error) {
	r, err := p.b.s.service.Explain(p.ctx, who, &mihv1.ExplainRequest{PredictionId: args[0].(string)})
	return dict(r, err)
}

func (p *peer) configureThresholds(who mihf.Caller, args []any) (answer, error) {
	items, err := variant.DecodeRequests[mihv1.ThresholdConfig](args[1].([]variant.Dict))
	if err != nil {
		return answer{}, err
	}
	r, err := p.b.s.service.ConfigureThresholds(p.ctx, who, &mihv1.ConfigureThresholdsRequest{Link: args[0].(string), Items: items})
	return dict(r, err)
}

// machineID returns the host's id, as every D-Bus library gives it.
func machineID() (string, error) {
	var failed []error
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		b, err := os.ReadFile(path)
		if err == nil {
			return strings.TrimSpace(string(b)), nil
		}
		failed = append(failed, err)
	}
	return "", fmt.Errorf("this host has no machine id: %w", errors.Join(failed...))
}
