package recording

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"mihf.dev/mihf"
)

// seconds is a duration as a number of seconds.
type seconds float64

// maxSeconds bounds every time in a recording: 30 years.
const maxSeconds = 1e9

func toSeconds(d time.Duration) seconds { return seconds(float64(d) / 1e9) }

func (s seconds) duration() (time.Duration, error) {
	if !(math.Abs(float64(s)) <= maxSeconds) {
		return 0, fmt.Errorf("time of %g s is not within ±%g s", float64(s), maxSeconds)
	}
	return time.Duration(math.Round(float64(s) * 1e9)), nil
}

// length is a duration that cannot be below 0.
func (s seconds) length() (time.Duration, error) {
	d, err := s.duration()
	if err == nil && d < 0 {
		return 0, fmt.Errorf("%g s is below 0", float64(s))
	}
	return d, err
}

// text is arbitrary octets: escaped in the file, plain in the program.
type text string

func (t text) MarshalText() ([]byte, error) { return []byte(mihf.EscapeString(string(t))), nil }

func (t *text) UnmarshalText(b []byte) error {
	raw, err := mihf.Unescape(string(b))
	*t = text(raw)
	return err
}

// headerLine is the header as it is written.
type headerLine struct {
	Format      string    `json:"format"`
	Version     int       `json:"version"`
	Node        text      `json:"node,omitzero"`
	Started     time.Time `json:"started,omitzero"`
	Sensors     []text    `json:"sensors,omitzero"`
	Description text      `json:"description,omitzero"`
	Seed        *uint64   `json:"seed,omitzero"`
}

// line is an observation as it is written.
type line struct {
	T           *seconds           `json:"t"`
	Kind        string             `json:"kind"`
	Link        text               `json:"link,omitzero"`
	Sensor      text               `json:"sensor,omitzero"`
	Age         seconds            `json:"age_s,omitzero"`
	PoA         text               `json:"poa,omitzero"`
	Values      map[string]float64 `json:"values,omitzero"`
	Scanning    *bool              `json:"scanning,omitzero"`
	Lost        bool               `json:"lost,omitzero"`
	Gap         seconds            `json:"gap_s,omitzero"`
	Reason      string             `json:"reason,omitzero"`
	Facts       *facts             `json:"facts,omitzero"`
	Association *association       `json:"association,omitzero"`
	Detected    *detected          `json:"detected,omitzero"`
	Egress      *egress            `json:"egress,omitzero"`
	Peer        *peer              `json:"peer,omitzero"`
	Flow        *flow              `json:"flow,omitzero"`
	Condition   *condition         `json:"condition,omitzero"`
	Truth       *truth             `json:"truth,omitzero"`
}

type facts struct {
	Name         text      `json:"name,omitzero"`
	Index        int       `json:"index,omitzero"`
	Namespace    text      `json:"namespace,omitzero"`
	Kind         text      `json:"kind,omitzero"`
	HardwareAddr text      `json:"hardware_addr,omitzero"`
	MTU          int       `json:"mtu_bytes,omitzero"`
	AdminUp      bool      `json:"admin_up"`
	Carrier      bool      `json:"carrier"`
	Oper         string    `json:"oper_state"`
	Addresses    []address `json:"addresses,omitzero"`
	Defaults     []route   `json:"default_routes,omitzero"`
}

type address struct {
	Prefix     netip.Prefix `json:"prefix"`
	Tentative  bool         `json:"tentative,omitzero"`
	Deprecated bool         `json:"deprecated,omitzero"`
	Temporary  bool         `json:"temporary,omitzero"`
	LinkLocal  bool         `json:"link_local,omitzero"`
}

type route struct {
	IPv6    bool       `json:"ipv6,omitzero"`
	Gateway netip.Addr `json:"gateway,omitzero"`
	Source  netip.Addr `json:"source,omitzero"`
	Table   uint32     `json:"table,omitzero"`
	Metric  uint32     `json:"metric,omitzero"`
}

type association struct {
	State string  `json:"state"`
	PoA   text    `json:"poa,omitzero"`
	SSID  []byte  `json:"ssid,omitzero"`
	Cause *string `json:"cause,omitzero"`
	Code  uint32  `json:"code,omitzero"`
	Local bool    `json:"local,omitzero"`

	Technology text `json:"technology,omitzero"`
}

type detected struct {
	PoA    text               `json:"poa,omitzero"`
	SSID   []byte             `json:"ssid,omitzero"`
	Values map[string]float64 `json:"values,omitzero"`
}

type egress struct {
	IPv6    bool       `json:"ipv6,omitzero"`
	Link    text       `json:"link,omitzero"`
	Gateway netip.Addr `json:"gateway,omitzero"`
	Source  netip.Addr `json:"source,omitzero"`
	Table   uint32     `json:"table,omitzero"`
	Metric  uint32     `json:"metric,omitzero"`
}

type peer struct {
	Peer    netip.Addr `json:"peer"`
	Link    text       `json:"link,omitzero"`
	Source  netip.Addr `json:"source,omitzero"`
	Gateway netip.Addr `json:"gateway,omitzero"`
}

type condition struct {
	Sensor    text   `json:"sensor,omitzero"`
	Condition string `json:"condition"`
	Text      text   `json:"text,omitzero"`
}

type truth struct {
	Kind  text     `json:"kind"`
	Until *seconds `json:"until,omitzero"` // seconds from the start
}
