package config

import (
	"math"
	"regexp"
	"slices"
	"time"
)

var (
	nodeName  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	busName   = regexp.MustCompile(`^(auto|system|session|none|unix:(path|abstract)=[!-~]+)$`)
	modemBus  = regexp.MustCompile(`^(system|session|unix:(path|abstract)=[!-~]+)$`)
	groupName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,31}$`)
)

// into checks the values that are given and puts them into cfg.
func (r *rawConfig) into(c *checker, cfg *Config, known Known) {
	c.text("node.name", r.Node.Name, &cfg.Node.Name, nodeName, "1 to 64 letters, digits, dots, - or _")
	r.Broker.into(c, &cfg.Broker)
	r.Link.into(c, &cfg.Link)
	r.Hint.into(c, &cfg.Hint)
	c.oneOf("predictor.method", r.Predictor.Method, &cfg.Predictor.Method, append(slices.Clone(known.Predictors), NoPredictor)...)
	c.duration("predictor.evaluate_every", r.Predictor.EvaluateEvery, &cfg.Predictor.EvaluateEvery, 10*time.Millisecond, time.Second)
	r.Sensors.Rtnl.into(c, &cfg.Sensors.Rtnl)
	r.Sensors.NL80211.into(c, &cfg.Sensors.NL80211)
	r.Sensors.Modem.into(c, &cfg.Sensors.Modem)
	r.Sensors.SockDiag.into(c, &cfg.Sensors.SockDiag)
	set(r.Sensors.Suspend.Enabled, &cfg.Sensors.Suspend.Enabled)
	c.path("sensors.replay.file", r.Sensors.Replay.File, &cfg.Sensors.Replay.File)
	r.GRPC.into(c, &cfg.GRPC)
	c.text("dbus.bus", r.DBus.Bus, &cfg.DBus.Bus, busName, `"auto", "system", "session", "none", or an address "unix:path=/path"`)
	c.count("dbus.max_connections_per_user", r.DBus.MaxConnectionsPerUser, &cfg.DBus.MaxConnectionsPerUser, 1, 1024)
	c.count("dbus.max_waiting_per_user", r.DBus.MaxWaitingPerUser, &cfg.DBus.MaxWaitingPerUser, 1, 1<<16)
	c.must(cfg.DBus.Bus != "", "dbus.bus", `is empty; give "none" for no bus`)
	r.NATS.into(c, &cfg.NATS)
	c.oneOf("privacy.poa_ids", r.Privacy.PoAIDs, &cfg.Privacy.PoAIDs, PoAsHashed, PoAsPlain)
	c.path("privacy.poa_key_file", r.Privacy.PoAKeyFile, &cfg.Privacy.PoAKeyFile)
	c.must(cfg.Privacy.PoAKeyFile == "" || cfg.Privacy.PoAIDs == PoAsHashed, "privacy.poa_key_file", "is for privacy.poa_ids = %q, which is %q", PoAsHashed, cfg.Privacy.PoAIDs)
	r.Access.into(c, &cfg.Access, known.Roles)
	c.level("log.level", r.Log.Level, &cfg.Log.Level)
	c.oneOf("log.format", r.Log.Format, &cfg.Log.Format, "text", "json")
	c.address("metrics.listen", r.Metrics.Listen, &cfg.Metrics.Listen)
	set(r.Metrics.AllowRemote, &cfg.Metrics.AllowRemote)
	m := &cfg.Metrics
	c.must(m.Listen == "" || m.AllowRemote || loopback(m.Listen), "metrics.listen",
		"%q can be reached from other hosts, without a password; give a loopback address, or set metrics.allow_remote = true", m.Listen)
}

func set[T any](raw *T, v *T) {
	if raw != nil {
		*v = *raw
	}
}

func (r *rawBroker) into(c *checker, b *Broker) {
	c.count("broker.inputs", r.Inputs, &b.Inputs, 16, 1<<20)
	c.count("broker.replay", r.Replay, &b.Replay, 64, 1<<20)
	c.count("broker.hints", r.Hints, &b.Hints, 64, 1<<20)
	c.count("broker.reports", r.Reports, &b.Reports, 64, 1<<20)
	c.count("broker.max_subscribers", r.MaxSubscribers, &b.MaxSubscribers, 1, 1<<20)
	c.count("broker.max_subscribers_per_user", r.MaxSubscribersPerUser, &b.MaxSubscribersPerUser, 1, 1<<20)
	c.count("broker.max_unread_bytes_per_user", r.MaxUnreadBytesPerUser, &b.MaxUnreadBytesPerUser, 1<<16, 1<<30)
	c.count("broker.max_flows", r.MaxFlows, &b.MaxFlows, 1, 1<<20)
	c.count("broker.mailbox", r.Mailbox, &b.Mailbox, 16, 1<<20)
}

func (r *rawLink) into(c *checker, l *Link) {
	c.duration("link.settle", r.Settle, &l.Settle, 0, time.Second)
	c.duration("link.roam_withhold", r.RoamWithhold, &l.RoamWithhold, 0, 3*time.Second)
	c.duration("link.hold_down", r.HoldDown, &l.HoldDown, 0, 10*time.Minute)
	c.duration("link.route_hold", r.RouteHold, &l.RouteHold, 0, 10*time.Minute)
	c.duration("link.address_hold", r.AddressHold, &l.AddressHold, 0, 10*time.Minute)
	c.duration("link.horizon", r.Horizon, &l.Horizon, 50*time.Millisecond, 10*time.Second)
	c.share("link.threshold", r.Threshold, &l.Threshold)
	c.share("link.rollback_below", r.RollbackBelow, &l.RollbackBelow)
	c.duration("link.rollback_for", r.RollbackFor, &l.RollbackFor, 0, 10*time.Second)
	c.duration("link.flap_guard", r.FlapGuard, &l.FlapGuard, 0, time.Hour)
	c.share("link.guard_threshold", r.GuardThreshold, &l.GuardThreshold)
	c.duration("link.max_open", r.MaxOpen, &l.MaxOpen, time.Second, 10*time.Minute)
	c.duration("link.revision_every", r.RevisionEvery, &l.RevisionEvery, 10*time.Millisecond, time.Minute)
	c.duration("link.report_every", r.ReportEvery, &l.ReportEvery, 10*time.Millisecond, time.Hour)

	c.count("link.max_thresholds_per_user", r.MaxThresholdsPerUser, &l.MaxThresholdsPerUser, 1, 128)
	c.must(l.Threshold > 0, "link.threshold", "0 would announce a loss of every link at once; give more")
	c.must(l.RollbackBelow < l.Threshold, "link.rollback_below",
		"%v is not below link.threshold, %v: what announces a loss would take it back", l.RollbackBelow, l.Threshold)
	c.must(l.GuardThreshold >= l.Threshold, "link.guard_threshold",
		"%v is below link.threshold, %v: after a false alarm more should be needed, not less", l.GuardThreshold, l.Threshold)
	c.must(l.MaxOpen >= l.Horizon, "link.max_open",
		"%v is shorter than link.horizon, %v: a prediction would expire before what it predicts", l.MaxOpen, l.Horizon)
}

func (r *rawHint) into(c *checker, h *Hint) {
	c.duration("hint.rtt", r.RTT, &h.RTT, time.Millisecond, 10*time.Second)
	c.duration("hint.local_drain", r.LocalDrain, &h.LocalDrain, 0, 10*time.Second)
	c.duration("hint.recovery", r.Recovery, &h.Recovery, 0, time.Minute)
	c.duration("hint.lease", r.Lease, &h.Lease, 500*time.Millisecond, time.Minute)
	c.duration("hint.max_freeze", r.MaxFreeze, &h.MaxFreeze, 500*time.Millisecond, time.Hour)
	c.duration("hint.min_margin", r.MinMargin, &h.MinMargin, 0, 10*time.Second)
	c.duration("hint.max_margin", r.MaxMargin, &h.MaxMargin, time.Millisecond, 10*time.Second)
	c.share("hint.budget_share", r.BudgetShare, &h.BudgetShare)
	c.duration("hint.budget_window", r.BudgetWindow, &h.BudgetWindow, 10*time.Second, 24*time.Hour)
	c.duration("hint.backoff", r.Backoff, &h.Backoff, time.Millisecond, time.Hour)
	c.duration("hint.max_backoff", r.MaxBackoff, &h.MaxBackoff, time.Millisecond, 24*time.Hour)

	c.must(h.Lease <= h.MaxFreeze, "hint.lease", "%v is longer than hint.max_freeze, %v", h.Lease, h.MaxFreeze)
	c.must(h.MinMargin <= h.MaxMargin, "hint.min_margin", "%v is more than hint.max_margin, %v", h.MinMargin, h.MaxMargin)
	c.must(h.Backoff <= h.MaxBackoff, "hint.backoff", "%v is longer than hint.max_backoff, %v", h.Backoff, h.MaxBackoff)
}

func (r *rawRtnl) into(c *checker, s *Rtnl) {
	set(r.Enabled, &s.Enabled)
	c.duration("sensors.rtnl.settle", r.Settle, &s.Settle, 0, 10*time.Second)
	c.duration("sensors.rtnl.reconcile", r.Reconcile, &s.Reconcile, time.Second, 30*time.Second)
	c.count("sensors.rtnl.buffer_bytes", r.BufferBytes, &s.BufferBytes, 4<<10, 32<<20)
	c.count("sensors.rtnl.mark", r.Mark, &s.Mark, 0, math.MaxInt32)
	c.count("sensors.rtnl.uid", r.UID, &s.UID, -1, math.MaxInt32)
}

func (r *rawNL80211) into(c *checker, s *NL80211) {
	set(r.Enabled, &s.Enabled)
	c.count("sensors.nl80211.near_dbm", r.NearDBm, &s.NearDBm, -100, -20)
	c.duration("sensors.nl80211.poll_far", r.PollFar, &s.PollFar, 100*time.Millisecond, time.Minute)
	c.duration("sensors.nl80211.poll_near", r.PollNear, &s.PollNear, 20*time.Millisecond, time.Minute)
	set(r.SetCQM, &s.SetCQM)
	c.count("sensors.nl80211.buffer_bytes", r.BufferBytes, &s.BufferBytes, 4<<10, 8<<20)
	c.must(s.PollNear <= s.PollFar, "sensors.nl80211.poll_near",
		"%v is longer than sensors.nl80211.poll_far, %v: close to a loss the signal is read more often, not less", s.PollNear, s.PollFar)
}

func (r *rawModem) into(c *checker, s *Modem) {
	set(r.Enabled, &s.Enabled)
	c.text("sensors.modem.bus", r.Bus, &s.Bus, modemBus, `"system", "session", or an address "unix:path=/path"`)
	c.must(s.Bus != "", "sensors.modem.bus", "is empty; set sensors.modem.enabled = false for no modems")
	c.duration("sensors.modem.poll", r.Poll, &s.Poll, 0, 10*time.Minute)
	c.must(s.Poll%time.Second == 0, "sensors.modem.poll", "%v is no whole number of seconds, as ModemManager wants it", s.Poll)
	c.count("sensors.modem.threshold_db", r.ThresholdDB, &s.ThresholdDB, 0, 50)
	c.names("sensors.modem.never_poll", r.NeverPoll, &s.NeverPoll)
	set(r.Cells, &s.Cells)
}

func (r *rawSockDiag) into(c *checker, s *SockDiag) {
	set(r.Enabled, &s.Enabled)
	c.oneOf("sensors.sock_diag.flows", r.Flows, &s.Flows, FlowsAll, FlowsRegistered)
	c.duration("sensors.sock_diag.poll", r.Poll, &s.Poll, 100*time.Millisecond, time.Minute)
}

func (r *rawGRPC) into(c *checker, g *GRPC) {
	c.path("grpc.socket", r.Socket, &g.Socket)
	c.must(len(g.Socket) <= maxSocketPath, "grpc.socket", "has %d bytes; a socket's path may have %d", len(g.Socket), maxSocketPath)
	c.mode("grpc.mode", r.Mode, &g.Mode)
	c.text("grpc.group", r.Group, &g.Group, groupName, "the name of a group")
	c.address("grpc.listen", r.Listen, &g.Listen)
	c.path("grpc.cert", r.Cert, &g.Cert)
	c.path("grpc.key", r.Key, &g.Key)
	c.path("grpc.client_ca", r.ClientCA, &g.ClientCA)
	c.count("grpc.max_connections_per_user", r.MaxConnectionsPerUser, &g.MaxConnectionsPerUser, 1, 4096)
	c.count("grpc.max_calls_per_user", r.MaxCallsPerUser, &g.MaxCallsPerUser, 1, 1<<20)
	c.count("grpc.max_unread_bytes_per_user", r.MaxUnreadBytesPerUser, &g.MaxUnreadBytesPerUser, 1<<16, 1<<30)
	for _, f := range []struct{ key, path, what string }{
		{"grpc.cert", g.Cert, "the daemon's certificate"},
		{"grpc.key", g.Key, "the certificate's private key"},
		{"grpc.client_ca", g.ClientCA, "the authority that signs the clients' certificates"},
	} {
		c.must(g.Listen == "" || f.path != "", f.key,
			"must be given with grpc.listen: over TCP both sides show certificates; name the PEM file of %s", f.what)
	}
}

// maxSocketPath is what fits into sockaddr_un, with the byte that ends it.
const maxSocketPath = 107
