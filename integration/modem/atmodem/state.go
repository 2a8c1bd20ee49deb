package atmodem

import (
	"fmt"
	"strconv"
	"strings"
)

// Registration is a state of registration (+CREG's stat).
type Registration int

// Registrations.
const (
	Idle      Registration = 0
	Home      Registration = 1
	Searching Registration = 2
	Denied    Registration = 3
	Roaming   Registration = 5
)

func (r Registration) served() bool { return r == Home || r == Roaming }

// Access is an access technology (+COPS' AcT).
type Access int

// Access technologies.
const (
	GSM  Access = 0
	UMTS Access = 2
	LTE  Access = 7
)

// Radio is what the modem hears. Values are in dBm and dB; those of another technology than
// the present one are not told.
type Radio struct {
	Bars int // of 5, as the display of a telephone has them
	RSSI int // GSM, and what +CSQ says
	RSRP int // LTE
	RSRQ int
	RSCP int // UMTS
	EcIo int
}

// Network is what the modem is attached to.
type Network struct {
	Registration Registration
	Access       Access
	Code, Name   string // of the operator: MCC and MNC
	Area, Cell   uint32
}

// state is the modem as the interpreter sees it. It is pure.
type state struct {
	cfg     Config
	network Network
	radio   Radio
	noSIM   bool

	functional int  // +CFUN
	format     int  // +COPS' of names
	events     bool // +CMER: +CIEV is told
	told       map[string]int
	session    bool
}

func newState(cfg Config) *state {
	return &state{
		cfg: cfg, noSIM: cfg.NoSIM, functional: 1, told: map[string]int{},
		network: Network{Registration: Home, Access: LTE, Code: "26201", Name: "Testnet", Area: 0x1a2b, Cell: 0x1c3d4e5},
		radio:   Radio{Bars: 4, RSSI: -71, RSRP: -90, RSRQ: -9, RSCP: -95, EcIo: -6},
	}
}

// result is what a command line comes to.
type result struct {
	lines []string // information
	final string   // "OK", "ERROR", "CONNECT …"
}

// line interprets one command line. Without "AT" in front it is none: false.
func (s *state) line(text string) (result, bool) {
	text = strings.TrimSpace(text)
	if len(text) < 2 || !strings.EqualFold(text[:2], "AT") {
		return result{}, false
	}
	var r result
	for _, c := range split(text[2:]) {
		info, final := s.command(c)
		r.lines = append(r.lines, info...)
		if final != ok {
			r.final = final
			return r, true
		}
	}
	r.final = ok
	return r, true
}

// split cuts a command line into commands: basic ones stand one after the other ("E0V1"),
// extended ones are separated by semicolons, and a dialled number goes to the end.
func split(text string) (list []string) {
	for text = strings.TrimLeft(text, " ;"); text != ""; text = strings.TrimLeft(text, " ;") {
		n := len(text)
		switch text[0] {
		case 'D', 'd':
		case '+', '^', '%', '*':
			if i := strings.IndexByte(text, ';'); i >= 0 {
				n = i
			}
		default:
			n = basic(text)
		}
		if c := strings.TrimSpace(text[:n]); c != "" {
			list = append(list, c)
		}
		text = text[n:]
	}
	return list
}

// basic returns the length of the basic command that a text begins with: "&" and a letter, or
// a letter, and digits.
func basic(text string) int {
	n := 1
	if text[0] == '&' && len(text) > 1 {
		n = 2
	}
	for n < len(text) && (text[n] >= '0' && text[n] <= '9' || text[n] == '=' || text[n] == '?') {
		n++
	}
	return n
}

// registration is the line of one of the registration commands.
func (s *state) registration(name string, asked bool) string {
	n := &s.network
	text := name + ": "
	if asked {
		text += strconv.Itoa(s.told[name]) + ","
	}
	text += strconv.Itoa(int(n.Registration))
	if s.told[name] == 2 && n.Registration.served() {
		text += fmt.Sprintf(",\"%04X\",\"%08X\",%d", n.Area, n.Cell, n.Access)
	}
	return text
}

// registrations are the commands whose lines are told when the network changes.
var registrations = []string{"+CREG", "+CGREG", "+CEREG"}

// changed returns the unsolicited lines of a change.
func (s *state) changed(network, radio bool) (lines []string) {
	if network {
		for _, name := range registrations {
			if s.told[name] > 0 {
				lines = append(lines, s.registration(name, false))
			}
		}
	}
	if s.events {
		if radio {
			lines = append(lines, fmt.Sprintf("+CIEV: %d,%d", indicatorSignal, s.bars()))
		}
		if network {
			lines = append(lines, fmt.Sprintf("+CIEV: %d,%d", indicatorService, number(s.network.Registration.served())),
				fmt.Sprintf("+CIEV: %d,%d", indicatorRoaming, number(s.network.Registration == Roaming)))
		}
	}
	return lines
}

// bars are none without a network.
func (s *state) bars() int {
	if !s.network.Registration.served() {
		return 0
	}
	return min(max(s.radio.Bars, 0), 5)
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
