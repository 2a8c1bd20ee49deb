package broker

import (
	"cmp"
	"context"
	"slices"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
)

// Snapshot returns the state that the caller may see.
func (b *Broker) Snapshot(ctx context.Context, who mihf.Caller) (*mihf.Snapshot, error) {
	if err := b.require("snapshot", who, access.See); err != nil {
		return nil, err
	}
	var s *mihf.Snapshot
	err := b.do(ctx, func(now mihf.Time) { s = b.engine.Snapshot(now, b.access.Load().Sees(who)) })
	return s, err
}

// Parameters returns the state of one link.
func (b *Broker) Parameters(ctx context.Context, who mihf.Caller, link mihf.LinkID) (s mihf.LinkStatus, err error) {
	if err := b.require("parameters", who, access.See); err != nil {
		return s, err
	}
	stopped := b.do(ctx, func(now mihf.Time) { s, err = b.engine.LinkStatus(now, link) })
	if stopped != nil {
		return s, stopped
	}
	return s, err
}

// Information returns what is known of points of attachment.
func (b *Broker) Information(ctx context.Context, who mihf.Caller, req mihf.InformationRequest) (*mihf.Information, error) {
	if err := b.require("information", who, access.See); err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, b.refused(err)
	}
	var out *mihf.Information
	if err := b.do(ctx, func(now mihf.Time) { out = b.engine.Information(now, &req) }); err != nil {
		return nil, err
	}
	slices.SortFunc(out.PoAs, func(x, y mihf.PoAInformation) int { // many: not in the loop
		return cmp.Or(cmp.Compare(y.LastHeard, x.LastHeard), cmp.Compare(x.Link, y.Link), cmp.Compare(x.PoA, y.PoA))
	})
	return out, nil
}

// ConfigureThresholds applies all items to a link or none.
func (b *Broker) ConfigureThresholds(ctx context.Context, who mihf.Caller, link mihf.LinkID, items []mihf.ThresholdConfig) error {
	if err := b.require("configure_thresholds", who, access.Command); err != nil {
		return err
	}
	var err error
	if stopped := b.do(ctx, func(now mihf.Time) { err = b.engine.ConfigureThresholds(now, link, who.Identity(), items) }); stopped != nil {
		return stopped
	}
	return err
}

// Explain tells why a prediction was announced. Flows of other owners are left out of it
// unless the caller may see them.
func (b *Broker) Explain(ctx context.Context, who mihf.Caller, id mihf.PredictionID) (x *mihf.Explanation, err error) {
	if err := b.require("explain", who, access.See); err != nil {
		return nil, err
	}
	table := b.access.Load()
	all, see := table.May(who, access.RegisterAny), table.Sees(who)
	stopped := b.do(ctx, func(mihf.Time) {
		if x, err = b.engine.Explain(id); err != nil {
			return
		}
		shown := x.Decisions[:0]
		for _, d := range x.Decisions {
			s := b.sessions[d.Flow]
			if d.Flow == "" || all || (s != nil && see(s.owner)) {
				shown = append(shown, d)
			}
		}
		x.Decisions = shown
	})
	if stopped != nil {
		return nil, stopped
	}
	return x, err
}

// Status returns counts and conditions.
func (b *Broker) Status(ctx context.Context, who mihf.Caller) (mihf.Status, error) {
	if err := b.require("status", who, access.See); err != nil {
		return mihf.Status{}, err
	}
	var s mihf.Status
	err := b.do(ctx, func(now mihf.Time) {
		links, flows := b.engine.Counts()
		refused := b.engine.Refused()
		_, lost := b.engine.Learned()
		s = mihf.Status{
			Version: b.cfg.Version, Node: b.Node(), Boot: b.Boot(), Uptime: now.Sub(b.started), Sequence: b.engine.Sequence(),
			Links: links, Flows: flows, Sensors: append([]mihf.SensorCondition(nil), b.engine.Sensors()...),
		}
		s.Subscribers = b.shares.subscribers()
		s.Counters = []mihf.CounterValue{
			{Name: "mihf_broker_observations_total", Value: b.counts.observations.Load()},
			{Name: "mihf_broker_events_total", Value: b.counts.events.Load()},
			{Name: "mihf_broker_hints_total", Value: b.counts.hints.Load()},
			{Name: "mihf_broker_slow_subscribers_total", Value: b.counts.slow.Load()},
			{Name: "mihf_broker_refused_requests_total", Value: b.counts.refused.Load()},
			{Name: "mihf_engine_refused_links_total", Value: refused.Links},
			{Name: "mihf_engine_refused_sensors_total", Value: refused.Sensors},
			{Name: "mihf_info_forgotten_poas_total", Value: lost.Forgotten},
			{Name: "mihf_info_refused_observations_total", Value: lost.Refused},
		}
	})
	return s, err
}
