package wiring

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"

	"mihf.dev/mihf"
	"mihf.dev/mihf/access"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/hint"
	"mihf.dev/mihf/linkstate"
	"mihf.dev/predictors"
	"mihf.dev/predictors/ensemble"
	"mihf.dev/predictors/familiar"
	"mihf.dev/predictors/level"
)

// Methods returns the prediction methods that exist.
func Methods() predictors.Methods {
	return predictors.Methods{level.Method(), familiar.Method(), ensemble.Method()}
}

// Known returns what a configuration may name.
func Known() config.Known {
	k := config.Known{Roles: access.RoleNames()}
	for _, m := range Methods() {
		k.Predictors = append(k.Predictors, m.Name)
	}
	return k
}

// NewPredictor returns what makes a link's predictor by the method's name; nil for
// [config.NoPredictor].
func NewPredictor(method string) (func(mihf.LinkID) engine.Predictor, error) {
	if method == config.NoPredictor {
		return nil, nil
	}
	m, err := Methods().Find(method)
	if err != nil {
		return nil, fmt.Errorf("%w, %s", err, config.NoPredictor)
	}
	return func(mihf.LinkID) engine.Predictor { return m.New() }, nil
}

// NewBootID returns a random id that is not zero.
func NewBootID() mihf.BootID {
	var b [4]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		if id := binary.NativeEndian.Uint32(b[:]); id != 0 {
			return mihf.BootID(id)
		}
	}
}

// nodeName returns the configured name, else the host's.
func nodeName(n *config.Node) mihf.NodeID {
	if n.Name != "" {
		return mihf.NodeID(n.Name)
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		return mihf.NodeID(host)
	}
	return "localhost"
}

// engineConfig maps the sections that the engine's parts are made of. It has no boot id
// and no predictor.
func engineConfig(c *config.Config) engine.Config {
	l, h := &c.Link, &c.Hint
	return engine.Config{
		Node: nodeName(&c.Node),
		Link: linkstate.Config{
			Settle: l.Settle, RoamWithhold: l.RoamWithhold, HoldDown: l.HoldDown,
			Horizon: l.Horizon, Threshold: l.Threshold, RollbackBelow: l.RollbackBelow, RollbackFor: l.RollbackFor,
			FlapGuard: l.FlapGuard, GuardThreshold: l.GuardThreshold, MaxOpen: l.MaxOpen,
			RevisionEvery: l.RevisionEvery, ReportEvery: l.ReportEvery, MaxThresholdsPerUser: l.MaxThresholdsPerUser,
		},
		Hint: hint.Config{
			RTT: h.RTT, LocalDrain: h.LocalDrain, Recovery: h.Recovery,
			Lease: h.Lease, MaxFreeze: h.MaxFreeze, MinMargin: h.MinMargin, MaxMargin: h.MaxMargin,
			BudgetShare: h.BudgetShare, BudgetWindow: h.BudgetWindow, Backoff: h.Backoff, MaxBackoff: h.MaxBackoff,
		},
		EvaluateEvery: c.Predictor.EvaluateEvery,
		RouteHold:     l.RouteHold,
		AddressHold:   l.AddressHold,
	}
}

// NewBroker returns the broker of a configuration. watch is told what matters of
// flows.
func NewBroker(c *config.Config, o Options, watch Watch) (*broker.Broker, error) {
	e := engineConfig(c)
	e.Boot = NewBootID()
	var err error
	if e.NewPredictor, err = NewPredictor(c.Predictor.Method); err != nil {
		return nil, err
	}
	return broker.New(brokerConfig(c, o, e, watch)), nil
}

func brokerConfig(c *config.Config, o Options, e engine.Config, watch Watch) broker.Config {
	b := &c.Broker
	return broker.Config{
		Engine: e, Clock: o.Clock, Logger: o.Logger, Version: o.Version, WatchPeers: watch.Peers, WatchFlows: watch.Flows,
		Access: Access(&c.Access),
		Inputs: b.Inputs, Replay: b.Replay, Hints: b.Hints, Reports: b.Reports,
		MaxSubscribers: b.MaxSubscribers, MaxSubscribersPerUser: b.MaxSubscribersPerUser, MaxUnreadBytesPerUser: b.MaxUnreadBytesPerUser,
		MaxFlows: b.MaxFlows, Mailbox: b.Mailbox,
	}
}
