package dbusfront

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"mihf.dev/mihf"
	"mihf.dev/mihf/front/broadcast"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
	"mihf.dev/proto/variant"
)

func (p *peer) getSnapshot(who mihf.Caller, _ []any) (answer, error) {
	snap, err := p.b.s.o.Broker.Snapshot(p.ctx, who)
	if err != nil {
		return answer{}, err
	}
	return give(variant.Encode(p.b.s.encoder().Snapshot(snap)))
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
	link, err := conv.DecodeLink(args[0].(string))
	if err != nil {
		return answer{}, err
	}
	l, err := p.b.s.o.Broker.Parameters(p.ctx, who, link)
	if err != nil {
		return answer{}, err
	}
	return give(variant.Encode(p.b.s.encoder().LinkStatus(&l)))
}

func (p *peer) getInformation(who mihf.Caller, args []any) (answer, error) {
	var req mihv1.GetInformationRequest
	if err := variant.DecodeRequest(dictOf(args[0]), &req); err != nil {
		return answer{}, err
	}
	q, err := conv.DecodeInformationRequest(&req)
	if err != nil {
		return answer{}, err
	}
	info, err := p.b.s.o.Broker.Information(p.ctx, who, q)
	if err != nil {
		return answer{}, err
	}
	return give(variant.Encode(p.b.s.encoder().Information(info)))
}

func (p *peer) status(who mihf.Caller, _ []any) (answer, error) {
	st, err := p.b.s.o.Broker.Status(p.ctx, who)
	if err != nil {
		return answer{}, err
	}
	return give(variant.Encode(conv.EncodeStatus(&st)))
}

func (p *peer) explain(who mihf.Caller, args []any) (answer, error) {
	id, err := conv.DecodePredictionID(args[0].(string))
	if err != nil {
		return answer{}, err
	}
	x, err := p.b.s.o.Broker.Explain(p.ctx, who, id)
	if err != nil {
		return answer{}, err
	}
	return give(variant.Encode(p.b.s.encoder().Explanation(x)))
}

func (p *peer) configureThresholds(who mihf.Caller, args []any) (answer, error) {
	link, err := conv.DecodeLink(args[0].(string))
	if err != nil {
		return answer{}, err
	}
	raw, err := variant.DecodeRequests[mihv1.ThresholdConfig](args[1].([]variant.Dict))
	if err != nil {
		return answer{}, err
	}
	items, err := conv.DecodeThresholds(raw)
	if err != nil {
		return answer{}, err
	}
	if err := p.b.s.o.Broker.ConfigureThresholds(p.ctx, who, link, items); err != nil {
		return answer{}, err
	}
	return give(variant.Encode(&mihv1.ConfigureThresholdsResponse{}))
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
