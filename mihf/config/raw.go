package config

// rawConfig is what a file says. Nil is "not given", everywhere. Durations, modes and
// levels are strings there; values are checked by the methods into (see check.go).
type rawConfig struct {
	Node struct {
		Name *string `toml:"name"`
	} `toml:"node"`
	Broker    rawBroker `toml:"broker"`
	Link      rawLink   `toml:"link"`
	Hint      rawHint   `toml:"hint"`
	Predictor struct {
		Method        *string `toml:"method"`
		EvaluateEvery *string `toml:"evaluate_every"`
	} `toml:"predictor"`
	Sensors struct {
		Rtnl     rawRtnl     `toml:"rtnl"`
		NL80211  rawNL80211  `toml:"nl80211"`
		Modem    rawModem    `toml:"modem"`
		SockDiag rawSockDiag `toml:"sock_diag"`
		Suspend  struct {
			Enabled *bool `toml:"enabled"`
		} `toml:"suspend"`
		Replay struct {
			File *string `toml:"file"`
		} `toml:"replay"`
	} `toml:"sensors"`
	GRPC rawGRPC `toml:"grpc"`
	DBus struct {
		Bus                   *string `toml:"bus"`
		MaxConnectionsPerUser *int    `toml:"max_connections_per_user"`
		MaxWaitingPerUser     *int    `toml:"max_waiting_per_user"`
	} `toml:"dbus"`
	NATS    rawNATS `toml:"nats"`
	Privacy struct {
		PoAIDs     *string `toml:"poa_ids"`
		PoAKeyFile *string `toml:"poa_key_file"`
	} `toml:"privacy"`
	Access rawAccess `toml:"access"`
	Log    struct {
		Level  *string `toml:"level"`
		Format *string `toml:"format"`
	} `toml:"log"`
	Metrics struct {
		Listen      *string `toml:"listen"`
		AllowRemote *bool   `toml:"allow_remote"`
	} `toml:"metrics"`
}

type rawBroker struct {
	Inputs         *int `toml:"inputs"`
	Replay         *int `toml:"replay"`
	Hints          *int `toml:"hints"`
	Reports        *int `toml:"reports"`
	MaxSubscribers *int `toml:"max_subscribers"`

	MaxSubscribersPerUser *int `toml:"max_subscribers_per_user"`
	MaxUnreadBytesPerUser *int `toml:"max_unread_bytes_per_user"`

	MaxFlows *int `toml:"max_flows"`
	Mailbox  *int `toml:"mailbox"`
}

type rawLink struct {
	Settle         *string  `toml:"settle"`
	RoamWithhold   *string  `toml:"roam_withhold"`
	HoldDown       *string  `toml:"hold_down"`
	RouteHold      *string  `toml:"route_hold"`
	AddressHold    *string  `toml:"address_hold"`
	Horizon        *string  `toml:"horizon"`
	Threshold      *float64 `toml:"threshold"`
	RollbackBelow  *float64 `toml:"rollback_below"`
	RollbackFor    *string  `toml:"rollback_for"`
	FlapGuard      *string  `toml:"flap_guard"`
	GuardThreshold *float64 `toml:"guard_threshold"`
	MaxOpen        *string  `toml:"max_open"`
	RevisionEvery  *string  `toml:"revision_every"`
	ReportEvery    *string  `toml:"report_every"`

	MaxThresholdsPerUser *int `toml:"max_thresholds_per_user"`
}

type rawHint struct {
	RTT          *string  `toml:"rtt"`
	LocalDrain   *string  `toml:"local_drain"`
	Recovery     *string  `toml:"recovery"`
	Lease        *string  `toml:"lease"`
	MaxFreeze    *string  `toml:"max_freeze"`
	MinMargin    *string  `toml:"min_margin"`
	MaxMargin    *string  `toml:"max_margin"`
	BudgetShare  *float64 `toml:"budget_share"`
	BudgetWindow *string  `toml:"budget_window"`
	Backoff      *string  `toml:"backoff"`
	MaxBackoff   *string  `toml:"max_backoff"`
}

type rawRtnl struct {
	Enabled     *bool   `toml:"enabled"`
	Settle      *string `toml:"settle"`
	Reconcile   *string `toml:"reconcile"`
	BufferBytes *int    `toml:"buffer_bytes"`
	Mark        *int    `toml:"mark"`
	UID         *int    `toml:"uid"`
}

type rawModem struct {
	Enabled     *bool     `toml:"enabled"`
	Bus         *string   `toml:"bus"`
	Poll        *string   `toml:"poll"`
	ThresholdDB *int      `toml:"threshold_db"`
	NeverPoll   *[]string `toml:"never_poll"`
	Cells       *bool     `toml:"cells"`
}

type rawNL80211 struct {
	Enabled     *bool   `toml:"enabled"`
	NearDBm     *int    `toml:"near_dbm"`
	PollFar     *string `toml:"poll_far"`
	PollNear    *string `toml:"poll_near"`
	SetCQM      *bool   `toml:"set_cqm"`
	BufferBytes *int    `toml:"buffer_bytes"`
}

type rawSockDiag struct {
	Enabled *bool   `toml:"enabled"`
	Flows   *string `toml:"flows"`
	Poll    *string `toml:"poll"`
}

type rawGRPC struct {
	Socket   *string `toml:"socket"`
	Mode     *string `toml:"mode"`
	Group    *string `toml:"group"`
	Listen   *string `toml:"listen"`
	Cert     *string `toml:"cert"`
	Key      *string `toml:"key"`
	ClientCA *string `toml:"client_ca"`

	MaxConnectionsPerUser *int `toml:"max_connections_per_user"`
	MaxCallsPerUser       *int `toml:"max_calls_per_user"`
	MaxUnreadBytesPerUser *int `toml:"max_unread_bytes_per_user"`
}

type rawAccess struct {
	Default *[]string  `toml:"default"`
	Grants  []rawGrant `toml:"grants"`
}

type rawGrant struct {
	UIDs         []uint32 `toml:"uids"`
	GIDs         []uint32 `toml:"gids"`
	Certificates []string `toml:"certificates"`
	NATSUsers    []string `toml:"nats_users"`
	Roles        []string `toml:"roles"`
	AsUID        *uint32  `toml:"as_uid"`
}

type rawNATS struct {
	Server *string `toml:"server"`
	Listen *string `toml:"listen"`
	Users  *string `toml:"users"`

	Leaf        []string `toml:"leaf"`
	Servers     []string `toml:"servers"`
	Credentials *string  `toml:"credentials"`
	Cert        *string  `toml:"cert"`
	Key         *string  `toml:"key"`
	CA          *string  `toml:"ca"`

	MaxConnectionsPerUser *int `toml:"max_connections_per_user"`
	MaxSessionsPerUser    *int `toml:"max_sessions_per_user"`
	MaxWaitingPerUser     *int `toml:"max_waiting_per_user"`

	TrustRequestInfo *bool   `toml:"trust_request_info"`
	Identity         *string `toml:"identity"`

	History         *bool   `toml:"history"`
	HistoryDir      *string `toml:"history_dir"`
	HistoryMaxBytes *int    `toml:"history_max_bytes"`
	HistoryMaxAge   *string `toml:"history_max_age"`
}
