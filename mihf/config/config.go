package config

import (
	"io/fs"
	"log/slog"
	"time"
)

// Config is a valid configuration. Comments give what the sample doesn't.
type Config struct {
	Node      Node      `toml:"node"`
	Broker    Broker    `toml:"broker"`
	Link      Link      `toml:"link"`
	Hint      Hint      `toml:"hint"`
	Predictor Predictor `toml:"predictor"`
	Sensors   Sensors   `toml:"sensors"`
	GRPC      GRPC      `toml:"grpc"`
	DBus      DBus      `toml:"dbus"`
	NATS      NATS      `toml:"nats"`
	Privacy   Privacy   `toml:"privacy"`
	Access    Access    `toml:"access"`
	Log       Log       `toml:"log"`
	Metrics   Metrics   `toml:"metrics"`
}

// Node is the host that the daemon runs on.
type Node struct {
	Name string `toml:"name"` // "": the host's name
}

// Broker holds the sizes of the broker's queues and its limits.
type Broker struct {
	Inputs         int `toml:"inputs"`
	Replay         int `toml:"replay"`
	Hints          int `toml:"hints"`
	Reports        int `toml:"reports"`
	MaxSubscribers int `toml:"max_subscribers"`

	MaxSubscribersPerUser int `toml:"max_subscribers_per_user"`
	MaxUnreadBytesPerUser int `toml:"max_unread_bytes_per_user"`

	MaxFlows int `toml:"max_flows"`
	Mailbox  int `toml:"mailbox"`
}

// Link says when the observations of a link become events.
type Link struct {
	Settle         time.Duration `toml:"settle"`
	RoamWithhold   time.Duration `toml:"roam_withhold"`
	HoldDown       time.Duration `toml:"hold_down"`
	RouteHold      time.Duration `toml:"route_hold"`
	AddressHold    time.Duration `toml:"address_hold"`
	Horizon        time.Duration `toml:"horizon"`
	Threshold      float64       `toml:"threshold"`
	RollbackBelow  float64       `toml:"rollback_below"`
	RollbackFor    time.Duration `toml:"rollback_for"`
	FlapGuard      time.Duration `toml:"flap_guard"`
	GuardThreshold float64       `toml:"guard_threshold"`
	MaxOpen        time.Duration `toml:"max_open"`
	RevisionEvery  time.Duration `toml:"revision_every"`
	ReportEvery    time.Duration `toml:"report_every"`

	MaxThresholdsPerUser int `toml:"max_thresholds_per_user"`
}

// Hint holds the policy's bounds, and what is assumed of a flow that doesn't say.
type Hint struct {
	RTT          time.Duration `toml:"rtt"`
	LocalDrain   time.Duration `toml:"local_drain"`
	Recovery     time.Duration `toml:"recovery"`
	Lease        time.Duration `toml:"lease"`
	MaxFreeze    time.Duration `toml:"max_freeze"`
	MinMargin    time.Duration `toml:"min_margin"`
	MaxMargin    time.Duration `toml:"max_margin"`
	BudgetShare  float64       `toml:"budget_share"`
	BudgetWindow time.Duration `toml:"budget_window"`
	Backoff      time.Duration `toml:"backoff"`
	MaxBackoff   time.Duration `toml:"max_backoff"`
}

// Predictor says how links are forecast.
type Predictor struct {
	Method        string        `toml:"method"` // a name of Known.Predictors, or [NoPredictor]
	EvaluateEvery time.Duration `toml:"evaluate_every"`
}

// NoPredictor is the method that forecasts nothing.
const NoPredictor = "none"

// Sensors holds a section for each sensor.
type Sensors struct {
	Rtnl     Rtnl     `toml:"rtnl"`
	NL80211  NL80211  `toml:"nl80211"`
	Modem    Modem    `toml:"modem"`
	SockDiag SockDiag `toml:"sock_diag"`
	Suspend  Suspend  `toml:"suspend"`
	Replay   Replay   `toml:"replay"`
}

// Rtnl is the sensor for links, addresses and routes.
type Rtnl struct {
	Enabled     bool          `toml:"enabled"`
	Settle      time.Duration `toml:"settle"`
	Reconcile   time.Duration `toml:"reconcile"`
	BufferBytes int           `toml:"buffer_bytes"`
	Mark        int           `toml:"mark"` // of the traffic whose way out is asked for, as fwmark; 0: none
	UID         int           `toml:"uid"`  // of its sender; -1: the daemon's own
}

// NL80211 is the sensor for Wi-Fi.
type NL80211 struct {
	Enabled     bool          `toml:"enabled"`
	NearDBm     int           `toml:"near_dbm"`
	PollFar     time.Duration `toml:"poll_far"`
	PollNear    time.Duration `toml:"poll_near"`
	SetCQM      bool          `toml:"set_cqm"`
	BufferBytes int           `toml:"buffer_bytes"`
}

// Modem is the sensor for mobile broadband.
type Modem struct {
	Enabled     bool          `toml:"enabled"`
	Bus         string        `toml:"bus"`          // that ModemManager is on: "system", "session", or an address
	Poll        time.Duration `toml:"poll"`         // in whole seconds; 0: never
	ThresholdDB int           `toml:"threshold_db"` // 0: none
	NeverPoll   []string      `toml:"never_poll"`   // equipment ids, device ids or devices
	Cells       bool          `toml:"cells"`
}

// Which flows the sensor of TCP flows reads, in [SockDiag.Flows].
const (
	FlowsAll        = "all" // that have an address of a link
	FlowsRegistered = "registered"
)

// SockDiag is the sensor for TCP flows.
type SockDiag struct {
	Enabled bool          `toml:"enabled"`
	Flows   string        `toml:"flows"`
	Poll    time.Duration `toml:"poll"`
}

// Suspend is the sensor for suspend and resume.
type Suspend struct {
	Enabled bool `toml:"enabled"`
}

// Replay is the sensor that plays a recording or a trace.
type Replay struct {
	File string `toml:"file"` // "": none
}

// DBus is the D-Bus front.
type DBus struct {
	Bus string `toml:"bus"` // "auto", "system", "session", "none", or a bus's address

	MaxConnectionsPerUser int `toml:"max_connections_per_user"`
	MaxWaitingPerUser     int `toml:"max_waiting_per_user"` // calls
}

// NoBus is the bus of a daemon that is on none.
const NoBus = "none"

// GRPC is the gRPC front. Cert, Key and ClientCA are set where Listen is.
type GRPC struct {
	Socket   string      `toml:"socket"` // "": Paths.Socket
	Mode     fs.FileMode `toml:"mode"`
	Group    string      `toml:"group"` // "": "mihf" for root's daemon, else the daemon's own
	Listen   string      `toml:"listen"`
	Cert     string      `toml:"cert"`
	Key      string      `toml:"key"`
	ClientCA string      `toml:"client_ca"`

	MaxConnectionsPerUser int `toml:"max_connections_per_user"`
	MaxCallsPerUser       int `toml:"max_calls_per_user"`
	MaxUnreadBytesPerUser int `toml:"max_unread_bytes_per_user"`
}

// What runs the NATS server, in [NATS.Server].
const (
	NATSNone     = "none"
	NATSEmbedded = "embedded"
	NATSExternal = "external"
)

// NATS is the NATS front.
type NATS struct {
	Server string `toml:"server"`
	Listen string `toml:"listen"` // "": the daemon's own server has no listener
	Users  string `toml:"users"`  // path

	Leaf        []string `toml:"leaf"`    // URLs that the daemon's own server joins
	Servers     []string `toml:"servers"` // URLs of an external one
	Credentials string   `toml:"credentials"`
	Cert        string   `toml:"cert"`
	Key         string   `toml:"key"`
	CA          string   `toml:"ca"`

	MaxConnectionsPerUser int `toml:"max_connections_per_user"` // of the daemon's own server
	MaxSessionsPerUser    int `toml:"max_sessions_per_user"`
	MaxWaitingPerUser     int `toml:"max_waiting_per_user"` // requests

	TrustRequestInfo bool   `toml:"trust_request_info"`
	Identity         string `toml:"identity"`

	History         bool          `toml:"history"`
	HistoryDir      string        `toml:"history_dir"` // "": below the state directory
	HistoryMaxBytes int           `toml:"history_max_bytes"`
	HistoryMaxAge   time.Duration `toml:"history_max_age"`
}

// How ids of points of attachment leave the host, in [Privacy.PoAIDs].
const (
	PoAsHashed = "hashed"
	PoAsPlain  = "plain"
)

// Privacy says what fronts tell other hosts of where this one is.
type Privacy struct {
	PoAIDs     string `toml:"poa_ids"`
	PoAKeyFile string `toml:"poa_key_file"` // "": in the state directory
}

// Access says who of those who may connect may do what.
type Access struct {
	Default []string `toml:"default"` // names of Known.Roles
	Grants  []Grant  `toml:"grants"`
}

// Grant gives roles to everyone whom it names.
type Grant struct {
	UIDs         []uint32
	GIDs         []uint32
	Certificates []string // common names of client certificates
	NATSUsers    []string
	Roles        []string // names of Known.Roles
	AsUID        *uint32  // nil: none
}

// Log says what is logged, and how.
type Log struct {
	Level  slog.Level `toml:"level"`
	Format string     `toml:"format"` // "text" or "json"
}

// Metrics is the Prometheus endpoint.
type Metrics struct {
	Listen      string `toml:"listen"` // "": none
	AllowRemote bool   `toml:"allow_remote"`
}

// Defaults returns the configuration in force where nothing is configured.
func Defaults() Config {
	return Config{
		Broker: Broker{Inputs: 1024, Replay: 4096, Hints: 8192, Reports: 2048, MaxSubscribers: 4096, MaxSubscribersPerUser: 1024, MaxUnreadBytesPerUser: 32 << 20, MaxFlows: 1024, Mailbox: 1024},
		Link: Link{
			Settle: 30 * time.Millisecond, RoamWithhold: 3 * time.Second,
			HoldDown: 5 * time.Second, RouteHold: 5 * time.Second, AddressHold: 3 * time.Second,
			Horizon: 2 * time.Second, Threshold: 0.5,
			RollbackBelow: 0.2, RollbackFor: 500 * time.Millisecond,
			FlapGuard: 30 * time.Second, GuardThreshold: 0.9, MaxOpen: 30 * time.Second,
			RevisionEvery: 250 * time.Millisecond, ReportEvery: 100 * time.Millisecond,
			MaxThresholdsPerUser: 32,
		},
		Hint: Hint{
			RTT: 100 * time.Millisecond, LocalDrain: 10 * time.Millisecond, Recovery: time.Second,
			Lease: 3 * time.Second, MaxFreeze: time.Minute,
			MinMargin: 5 * time.Millisecond, MaxMargin: 500 * time.Millisecond,
			BudgetShare: 0.02, BudgetWindow: 10 * time.Minute,
			Backoff: 2 * time.Second, MaxBackoff: 5 * time.Minute,
		},
		Predictor: Predictor{Method: "ensemble", EvaluateEvery: 50 * time.Millisecond},
		Sensors: Sensors{
			Rtnl:     Rtnl{Enabled: true, Settle: 500 * time.Millisecond, Reconcile: 30 * time.Second, BufferBytes: 1 << 20, UID: -1},
			NL80211:  NL80211{Enabled: true, NearDBm: -65, PollFar: time.Second, PollNear: 100 * time.Millisecond, BufferBytes: 256 << 10},
			Modem:    Modem{Enabled: true, Bus: "system", Poll: 5 * time.Second, ThresholdDB: 3, Cells: true},
			SockDiag: SockDiag{Enabled: true, Flows: FlowsAll, Poll: 500 * time.Millisecond},
			Suspend:  Suspend{Enabled: true},
		},
		GRPC:    GRPC{Mode: 0o660, MaxConnectionsPerUser: 1024, MaxCallsPerUser: 2048, MaxUnreadBytesPerUser: 32 << 20},
		NATS:    NATS{MaxConnectionsPerUser: 1024, MaxSessionsPerUser: 1024, MaxWaitingPerUser: 1024, Server: NATSNone, Identity: "external", HistoryMaxBytes: 64 << 20, HistoryMaxAge: 7 * 24 * time.Hour},
		DBus:    DBus{Bus: "auto", MaxConnectionsPerUser: 256, MaxWaitingPerUser: 256},
		Privacy: Privacy{PoAIDs: PoAsHashed},
		Access:  Access{Default: []string{"see", "register-own"}},
		Log:     Log{Level: slog.LevelInfo, Format: "text"},
	}
}
