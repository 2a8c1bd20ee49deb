package modem

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
)

// dict is what the properties of an interface are, and much else: a{sv}.
type dict = map[string]dbus.Variant

// objects is the answer of GetManagedObjects.
type objects = map[dbus.ObjectPath]map[string]dict

// reader reads properties and notes those of another type than they have.
type reader struct {
	wrong    []string
	rejected uint64 // values that the quantity cannot have
}

// err says which properties could not be read; nil: none.
func (r *reader) err() error {
	if len(r.wrong) == 0 {
		return nil
	}
	return fmt.Errorf("properties of another type: %s", strings.Join(r.wrong, ", "))
}

// get returns a property; where it is missing or of another type, the zero value and false.
func get[T any](r *reader, d dict, name string) (T, bool) {
	v, ok := d[name]
	if !ok {
		var zero T
		return zero, false
	}
	x, ok := v.Value().(T)
	if !ok && len(r.wrong) < maxBearers {
		r.wrong = append(r.wrong, fmt.Sprintf("%s (%s)", mihf.EscapeString(name), v.Signature()))
	}
	return x, ok
}

// text is a property that is a text, cut to a bound.
func text(r *reader, d dict, name string) string {
	s, _ := get[string](r, d, name)
	return s[:min(len(s), maxText)]
}

// modemInfo is what ModemManager says of a modem.
type modemInfo struct {
	equipment, identifier, device, model string

	state      int32
	failed     uint32 // why, where state is stateFailed
	access     uint32 // technologies
	quality    mihf.Opt[quality]
	bearers    []dbus.ObjectPath
	interfaces []string // its network interfaces, by name

	registration mihf.Opt[uint32]
	operator     string

	signals   bool   // it has the interface for signals
	rate      uint32 // seconds between two readings of ModemManager's polling; 0: none
	threshold uint32 // dB between two reports; 0: none
	values    mihf.Values

	cells bool     // ModemManager gathers the cell
	cell  mihf.PoA // as far as it is told to all; "": not
}

// quality is ModemManager's percentage.
type quality struct {
	percent uint32
	recent  bool
}

// decodeModem reads a modem's interfaces. What is missing or of another type is absent; the
// reader has noted it.
func decodeModem(r *reader, of map[string]dict) modemInfo {
	m := of[modemInterface]
	i := modemInfo{
		equipment: text(r, m, "EquipmentIdentifier"), identifier: text(r, m, "DeviceIdentifier"),
		device: text(r, m, "Device"), model: text(r, m, "Model"),
	}
	i.state, _ = get[int32](r, m, "State")
	i.failed, _ = get[uint32](r, m, "StateFailedReason")
	if i.access, _ = get[uint32](r, m, "AccessTechnologies"); i.access == accessAny {
		i.access = 0
	}
	i.quality = decodeQuality(r, m)
	if list, ok := get[[]dbus.ObjectPath](r, m, "Bearers"); ok {
		i.bearers = list[:min(len(list), maxBearers)]
	}
	i.interfaces = decodePorts(r, m)

	g := of[gppInterface]
	if v, ok := get[uint32](r, g, "RegistrationState"); ok {
		i.registration = mihf.Some(v)
	}
	i.operator = text(r, g, "OperatorCode")

	s, has := of[signalInterface]
	i.signals = has
	i.rate, _ = get[uint32](r, s, "Rate")
	i.threshold, _ = get[uint32](r, s, "RssiThreshold")
	i.values = decodeSignals(r, s, i.access)

	l := of[locationInterface]
	sources, _ := get[uint32](r, l, "Enabled")
	i.cells = sources&locationLacCi != 0
	if told, ok := get[map[uint32]dbus.Variant](r, l, "Location"); ok {
		i.cell = decodeLocation(r, told, &i)
	}
	return i
}

// technologyOf is the name of access technologies; "": not known.
func technologyOf(access uint32) string {
	lte, nr := access&accessLTE != 0, access&accessNR != 0
	switch {
	case lte && nr:
		return "lte+5gnr"
	case nr:
		return "5gnr"
	case lte:
		return "lte"
	case access&accessUMTS != 0:
		return "umts"
	case access&accessGSM != 0:
		return "gsm"
	case access&accessCDMA != 0:
		return "cdma"
	default:
		return ""
	}
}

func decodeQuality(r *reader, m dict) mihf.Opt[quality] {
	pair, ok := get[[]any](r, m, "SignalQuality")
	if !ok {
		return mihf.Opt[quality]{}
	}
	if len(pair) == 2 {
		percent, ok1 := pair[0].(uint32)
		recent, ok2 := pair[1].(bool)
		if ok1 && ok2 {
			return mihf.Some(quality{percent, recent})
		}
	}
	r.wrong = append(r.wrong, "SignalQuality")
	return mihf.Opt[quality]{}
}

// decodePorts returns the names of a modem's network interfaces.
func decodePorts(r *reader, m dict) (names []string) {
	ports, _ := get[[][]any](r, m, "Ports")
	for _, p := range ports[:min(len(ports), maxObjects)] {
		if len(p) != 2 {
			continue
		}
		name, ok := p[0].(string)
		if kind, is := p[1].(uint32); ok && is && kind == portNet && name != "" && len(names) < maxBearers {
			names = append(names, name[:min(len(name), maxText)])
		}
	}
	return names
}

// technologies are the dictionaries of the interface for signals: for which access
// technologies each counts, and what is in it.
var technologies = []struct {
	name   string
	access uint32
	values map[string]mihf.Parameter
}{
	{"Lte", accessLTE | accessNR, map[string]mihf.Parameter{"rsrp": mihf.ParamRSRP, "rsrq": mihf.ParamRSRQ, "snr": mihf.ParamSINR}},
	// Beside LTE (non-standalone) not every modem says NR.
	{"Nr5g", accessLTE | accessNR, map[string]mihf.Parameter{"rsrp": mihf.ParamNRRSRP, "rsrq": mihf.ParamNRRSRQ, "snr": mihf.ParamNRSINR}},
	{"Umts", accessUMTS, map[string]mihf.Parameter{"rscp": mihf.ParamRSCP, "ecio": mihf.ParamEcIo}},
	{"Gsm", accessGSM, map[string]mihf.Parameter{"rssi": mihf.ParamCarrierRSSI}},
}

// decodeSignals reads the dictionaries that agree with the access technologies; where those
// are not known (0), all.
func decodeSignals(r *reader, s dict, access uint32) (values mihf.Values) {
	for _, t := range technologies {
		of, ok := get[dict](r, s, t.name)
		if !ok || (access != 0 && access&t.access == 0) {
			continue
		}
		for name, parameter := range t.values {
			v, ok := get[float64](r, of, name)
			if !ok || math.IsNaN(v) || math.IsInf(v, 0) || v <= noValue {
				continue
			}
			if !values.Set(parameter, v) {
				r.rejected++
			}
		}
	}
	return values
}

// decodeLocation returns the cell of a location as ModemManager gives it; "": not known.
func decodeLocation(r *reader, told map[uint32]dbus.Variant, i *modemInfo) mihf.PoA {
	v, ok := told[locationLacCi]
	if !ok {
		return ""
	}
	s, ok := v.Value().(string)
	if !ok {
		r.wrong = append(r.wrong, "Location")
		return ""
	}
	return decodeCell(s, i.operator, i.access)
}

// decodeCell reads "MCC,MNC,LAC,CI[,TAC]", the last three in hexadecimal.
func decodeCell(s, operator string, access uint32) mihf.PoA {
	parts := strings.Split(s, ",")
	if len(parts) < 4 || len(s) > maxText {
		return ""
	}
	plmn := parts[0] + parts[1]
	if !isPLMN(plmn) {
		plmn = operator
	}
	cell, err := strconv.ParseUint(parts[3], 16, 64)
	if err != nil || !isPLMN(plmn) || !isCell(cell, access) {
		return ""
	}
	return mihf.PoA(plmn + "-" + strconv.FormatUint(cell, 16))
}

func isPLMN(s string) bool {
	return (len(s) == 5 || len(s) == 6) && strings.Trim(s, "0123456789") == "" && strings.Trim(s, "0") != ""
}

// isCell tells a cell's identity from the ways to say that it is not known.
func isCell(c uint64, access uint32) bool {
	switch c {
	case 0, noCell28, noCell32, noCell36:
		return false
	case noCell16: // LTE may have such a cell
		return access&(accessLTE|accessNR) != 0
	}
	return c < noCell36
}

// bearerInfo is what ModemManager says of a bearer.
type bearerInfo struct {
	connected bool
	name      string // of its interface or port; "": none
}

func decodeBearer(r *reader, d dict) bearerInfo {
	b := bearerInfo{name: text(r, d, "Interface")}
	b.connected, _ = get[bool](r, d, "Connected")
	return b
}
