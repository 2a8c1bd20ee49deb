package mihf

import (
	"fmt"
	"math"
	"math/bits"
)

// Parameter is one measured quantity of a link. One time series is one parameter:
// a sensor that changes from one attribute to another changes the parameter too.
type Parameter uint8

// Parameters. The unit of each is part of its name (see [Parameter.String]).
const (
	ParamRSSI               Parameter = iota // signal of the last frame
	ParamRSSIAverage                         // signal, averaged by the driver
	ParamBeaconSignal                        // signal of beacons, averaged by the driver
	ParamRSRP                                // LTE reference signal received power
	ParamRSRQ                                // LTE reference signal received quality
	ParamSINR                                // LTE signal to interference and noise ratio
	ParamRSCP                                // UMTS received signal code power
	ParamEcIo                                // UMTS energy per chip over interference
	ParamQuality                             // ModemManager's percentage
	ParamTxPHYRate                           // PHY rate, sending; not a capacity
	ParamRxPHYRate                           // PHY rate, receiving; not a capacity
	ParamTxRetryRatio                        // share of frames sent again since the last sample
	ParamTxFailRatio                         // share of frames given up since the last sample
	ParamBeaconLoss                          // beacons missed since the last sample
	ParamInactive                            // time since the peer was last heard
	ParamRTT                                 // round-trip time of a probe or of live flows
	ParamSilence                             // time since the last probe reply that was due
	ParamChannelBusy                         // share of the time that the radio's channel was taken, by whomever
	ParamExpectedThroughput                  // what the driver's rate control expects to send; an estimate, not a capacity
	ParamNRRSRP                              // 5G NR: SS-RSRP, its reference signal received power
	ParamNRRSRQ                              // 5G NR: SS-RSRQ, its reference signal received quality
	ParamNRSINR                              // 5G NR: SS-SINR, its signal to interference and noise ratio
	ParamCarrierRSSI                         // GSM: power received in the whole carrier
	ParamCoChannel                           // of what was heard: 1 on the frequency of the serving point, 0 on another
	numParams
)

// NumParameters is how many parameters exist; each is below it.
const NumParameters = int(numParams)

type paramInfo struct {
	name     string
	unit     string
	min, max float64
}

// params is the one table of names, units and sentinels: a value outside its range
// is a driver's or a modem's way of saying "not known".
var params = [numParams]paramInfo{
	ParamRSSI:               {"rssi_dbm", "dBm", -110, -10},
	ParamRSSIAverage:        {"rssi_average_dbm", "dBm", -110, -10},
	ParamBeaconSignal:       {"beacon_signal_dbm", "dBm", -110, -10},
	ParamRSRP:               {"rsrp_dbm", "dBm", -156, -31},
	ParamRSRQ:               {"rsrq_db", "dB", -43, 20},
	ParamSINR:               {"sinr_db", "dB", -23, 40},
	ParamRSCP:               {"rscp_dbm", "dBm", -120, -25},
	ParamEcIo:               {"ecio_db", "dB", -24, 0},
	ParamQuality:            {"quality_percent", "%", 0, 100},
	ParamTxPHYRate:          {"tx_phy_rate_bps", "bit/s", 1, 1e12},
	ParamRxPHYRate:          {"rx_phy_rate_bps", "bit/s", 1, 1e12},
	ParamTxRetryRatio:       {"tx_retry_ratio", "", 0, 1},
	ParamTxFailRatio:        {"tx_fail_ratio", "", 0, 1},
	ParamBeaconLoss:         {"beacon_loss", "", 0, 1e6},
	ParamInactive:           {"inactive_s", "s", 0, 1e6},
	ParamRTT:                {"rtt_s", "s", 1e-9, 1e3},
	ParamSilence:            {"silence_s", "s", 0, 1e6},
	ParamChannelBusy:        {"channel_busy_ratio", "", 0, 1},
	ParamExpectedThroughput: {"expected_throughput_bps", "bit/s", 1, 1e12},
	ParamCoChannel:          {"co_channel", "", 0, 1},
	ParamNRRSRP:             {"nr_rsrp_dbm", "dBm", -156, -31},
	ParamNRRSRQ:             {"nr_rsrq_db", "dB", -43, 20},
	ParamNRSINR:             {"nr_sinr_db", "dB", -23, 40},
	ParamCarrierRSSI:        {"carrier_rssi_dbm", "dBm", -113, -25},
}

// String returns the name with its unit, for example "rssi_dbm".
func (p Parameter) String() string {
	if int(p) >= NumParameters {
		return "unknown"
	}
	return params[p].name
}

// Unit returns the unit as people write it, for example "dBm"; "" for a ratio.
func (p Parameter) Unit() string {
	if int(p) >= NumParameters {
		return ""
	}
	return params[p].unit
}

// ParseParameter is the inverse of [Parameter.String].
func ParseParameter(s string) (Parameter, error) {
	for p := range numParams {
		if params[p].name == s {
			return p, nil
		}
	}
	return 0, fmt.Errorf("parameter %q is not known", s)
}

// Check says why v cannot be a value of p: not finite, or outside the range that
// the quantity can have. It returns nil if it can.
func (p Parameter) Check(v float64) error {
	if int(p) >= NumParameters {
		return fmt.Errorf("parameter %d is not known", p)
	}
	if info := &params[p]; math.IsNaN(v) || v < info.min || v > info.max {
		return fmt.Errorf("%s %v is outside %v to %v", info.name, v, info.min, info.max)
	}
	return nil
}

// Values holds the known values of a link's parameters. The zero Values knows none.
type Values struct {
	known uint32
	v     [numParams]float64
}

// Set stores a value and reports whether it could be one of p (see
// [Parameter.Check]); one that cannot stays absent.
func (vs *Values) Set(p Parameter, v float64) bool {
	if p.Check(v) != nil {
		return false
	}
	vs.known |= 1 << p
	vs.v[p] = v
	return true
}

// Get returns the value of p and whether it is known.
func (vs *Values) Get(p Parameter) (float64, bool) {
	if int(p) >= NumParameters || vs.known&(1<<p) == 0 {
		return 0, false
	}
	return vs.v[p], true
}

// Has reports whether p is known.
func (vs *Values) Has(p Parameter) bool { return vs.known&(1<<p) != 0 }

// Len returns how many values are known.
func (vs *Values) Len() int { return bits.OnesCount32(vs.known) }

// All calls f for each known value, in the order of the parameters, until it
// returns false.
func (vs *Values) All(f func(Parameter, float64) bool) {
	for m := vs.known; m != 0; m &= m - 1 {
		p := Parameter(bits.TrailingZeros32(m))
		if !f(p, vs.v[p]) {
			return
		}
	}
}

// Opt is a value that may be unknown. The zero Opt is unknown.
type Opt[T any] struct {
	value T
	known bool
}

// Some returns a known value.
func Some[T any](v T) Opt[T] { return Opt[T]{value: v, known: true} }

// Get returns the value and whether it is known.
func (o Opt[T]) Get() (T, bool) { return o.value, o.known }

// Known reports whether there is a value.
func (o Opt[T]) Known() bool { return o.known }

// Or returns the value, or d if it is unknown.
func (o Opt[T]) Or(d T) T {
	if o.known {
		return o.value
	}
	return d
}
