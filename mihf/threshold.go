package mihf

import "fmt"

// maxHysteresis is more than any parameter's range.
const maxHysteresis = 1e12

// Check says what is wrong with the item by itself; the error wraps [ErrInvalid]. Nil: nothing.
func (c *ThresholdConfig) Check() error {
	t, has := c.Threshold.Get()
	switch {
	case int(c.Parameter) >= NumParameters:
		return fmt.Errorf("%w: parameter %d is not known", ErrInvalid, c.Parameter)
	case c.Action > ThresholdCancel:
		return fmt.Errorf("%w: action %d is not known", ErrInvalid, c.Action)
	case has && c.Parameter.Check(t.Value) != nil:
		return fmt.Errorf("%w: %w", ErrInvalid, c.Parameter.Check(t.Value))
	case has && t.Direction > ThresholdBelow:
		return fmt.Errorf("%w: direction %d is not known", ErrInvalid, t.Direction)
	case c.Period != 0 && c.Period < MinReportPeriod:
		return fmt.Errorf("%w: a period of %v is shorter than %v", ErrInvalid, c.Period, MinReportPeriod)
	case !(c.Hysteresis >= 0 && c.Hysteresis <= maxHysteresis):
		return fmt.Errorf("%w: a hysteresis of %v is out of range", ErrInvalid, c.Hysteresis)
	case !has && c.Action == ThresholdOneShot:
		return fmt.Errorf("%w: one report of no threshold", ErrInvalid)
	case !has && c.Period == 0 && c.Action != ThresholdCancel:
		return fmt.Errorf("%w: neither a threshold nor a period", ErrInvalid)
	}
	return nil
}

// MayGive reports whether links of the type can have the parameter. That one can does not say
// that there is a sensor for it.
func (t LinkType) MayGive(p Parameter) bool {
	switch p {
	case ParamRTT, ParamSilence:
		return true // of whatever is sent
	case ParamTxPHYRate, ParamRxPHYRate:
		return t != LinkTunnel && t != LinkLoopback
	case ParamRSRP, ParamRSRQ, ParamRSCP, ParamEcIo, ParamQuality, ParamNRRSRP, ParamNRRSRQ, ParamNRSINR, ParamCarrierRSSI:
		return t == LinkWWAN || t == LinkOther
	case ParamBeaconSignal, ParamBeaconLoss, ParamChannelBusy, ParamExpectedThroughput:
		return t == LinkWiFi || t == LinkOther
	default:
		return t == LinkWiFi || t == LinkWWAN || t == LinkOther
	}
}
