package atmodem

import (
	"fmt"
	"strconv"
	"strings"
)

// Final results.
const (
	ok        = "OK"
	failed    = "ERROR"
	noSIM     = "+CME ERROR: 10"
	connect   = "CONNECT 100000000"
	noCarrier = "NO CARRIER"
)

// Indicators, in the order of +CIND.
const (
	indicatorSignal  = 2
	indicatorService = 3
	indicatorRoaming = 4
)

// command interprets one command.
func (s *state) command(c string) (lines []string, final string) {
	u := strings.ToUpper(c)
	for _, p := range s.cfg.Refuse {
		if strings.HasPrefix(u, p) {
			return nil, failed
		}
	}
	if i := strings.IndexAny(c, "=?"); i > 0 && isExtended(c) {
		name, rest := strings.ToUpper(c[:i]), c[i:]
		switch rest {
		case "=?":
			return s.test(name)
		case "?":
			return s.read(name)
		default:
			return s.set(name, strings.TrimPrefix(rest, "="))
		}
	}
	return s.act(u)
}

func isExtended(c string) bool { return c[0] == '+' || c[0] == '^' || c[0] == '%' || c[0] == '*' }

func one(text string) ([]string, string) { return []string{text}, ok }

// act interprets a command without a value.
func (s *state) act(c string) ([]string, string) {
	switch c {
	case "I":
		return []string{s.cfg.Manufacturer, s.cfg.Model, "1.0"}, ok
	case "+GCAP":
		return one("+GCAP: +CGSM,+CLTE2")
	case "+CGMI", "+GMI":
		return one(s.cfg.Manufacturer)
	case "+CGMM", "+GMM":
		return one(s.cfg.Model)
	case "+CGMR", "+GMR":
		return one("1.0")
	case "+CGSN", "+GSN":
		return one(s.cfg.IMEI)
	case "+CIMI":
		return s.ofSIM(s.network.Code + "1234567890")
	case "+CCID", "+ICCID":
		return s.ofSIM("+CCID: " + iccid)
	case "+CSQ":
		return one(fmt.Sprintf("+CSQ: %d,99", upTo(31, (s.radio.RSSI+113)/2)))
	case "+CESQ":
		return one(s.extended())
	}
	switch {
	case strings.HasPrefix(c, "D"):
		return s.dial()
	case strings.HasPrefix(c, "H"):
		s.session = false
		return nil, ok
	case isExtended(c):
		return nil, failed
	}
	return nil, ok // E, V, Q, X, S, Z, &C and their like change nothing here; the echo is the port's
}

const iccid = "89490200001234567890"

func (s *state) ofSIM(line string) ([]string, string) {
	if s.noSIM {
		return nil, noSIM
	}
	return one(line)
}

func (s *state) dial() ([]string, string) {
	if s.noSIM || s.session || !s.network.Registration.served() {
		return nil, noCarrier
	}
	s.session = true
	return nil, connect
}

// extended is +CESQ's line: the values of the present technology.
func (s *state) extended() string {
	v := [6]int{99, 99, 255, 255, 255, 255} // not known
	switch s.network.Access {
	case GSM:
		v[0] = upTo(63, s.radio.RSSI+111)
	case UMTS:
		v[2] = upTo(96, s.radio.RSCP+121)
		v[3] = upTo(49, 2*s.radio.EcIo+49)
	case LTE:
		v[4] = upTo(34, 2*s.radio.RSRQ+40)
		v[5] = upTo(97, s.radio.RSRP+141)
	}
	if !s.network.Registration.served() {
		v = [6]int{99, 99, 255, 255, 255, 255}
	}
	return fmt.Sprintf("+CESQ: %d,%d,%d,%d,%d,%d", v[0], v[1], v[2], v[3], v[4], v[5])
}

// upTo returns what of 0 to high is closest to v.
func upTo(high, v int) int { return max(0, min(v, high)) }

// tests are what can be set.
var tests = map[string]string{
	"+WS46": "(12,22,25,28)", "+CESQ": "(0-63,99),(0-7,99),(0-96,255),(0-49,255),(0-34,255),(0-97,255)",
	"+CIND": `("battchg",(0-5)),("signal",(0-5)),("service",(0,1)),("roam",(0,1))`,
	"+CMER": "(0-3),(0),(0),(0-1),(0)", "+CREG": "(0-2)", "+CGREG": "(0-2)", "+CEREG": "(0-2)",
	"+CGDCONT": `(1-3),"IP",,,(0),(0)`, "+CSCS": `("IRA","GSM","UCS2")`, "+CLCK": `("SC","PN")`, "+CFUN": "(0,1,4),(0,1)",
}

func (s *state) test(name string) ([]string, string) {
	v, known := tests[name]
	if !known {
		return nil, failed
	}
	return one(name + ": " + v)
}

// read interprets "NAME?".
func (s *state) read(name string) ([]string, string) {
	n := &s.network
	switch name {
	case "+CPIN":
		return s.ofSIM("+CPIN: READY")
	case "+CFUN":
		return one("+CFUN: " + strconv.Itoa(s.functional))
	case "+WS46":
		return one("+WS46: 25")
	case "+CIND":
		return one(fmt.Sprintf("+CIND: 5,%d,%d,%d", s.bars(), number(n.Registration.served()), number(n.Registration == Roaming)))
	case "+CREG", "+CGREG", "+CEREG":
		return one(s.registration(name, true))
	case "+COPS":
		switch {
		case !n.Registration.served():
			return one("+COPS: 0")
		case s.format == 2:
			return one(fmt.Sprintf("+COPS: 0,2,%q,%d", n.Code, n.Access))
		}
		return one(fmt.Sprintf("+COPS: 0,0,%q,%d", n.Name, n.Access))
	case "+CGDCONT":
		return one(`+CGDCONT: 1,"IP","internet","0.0.0.0",0,0`)
	case "+CGACT":
		return one("+CGACT: 1," + strconv.Itoa(number(s.session)))
	case "+CGATT":
		return one("+CGATT: " + strconv.Itoa(number(n.Registration.served())))
	case "+CSCS":
		return one(`+CSCS: "IRA"`)
	}
	return nil, failed
}

// set interprets "NAME=VALUE".
func (s *state) set(name, value string) ([]string, string) {
	switch name {
	case "+CFUN":
		s.functional = leading(value)
	case "+CREG", "+CGREG", "+CEREG":
		s.told[name] = upTo(2, leading(value))
	case "+CMER":
		s.events = leading(value) == 3
	case "+COPS":
		if rest, is := strings.CutPrefix(value, "3,"); is {
			s.format = leading(rest)
		}
	case "+CLCK":
		return one("+CLCK: 0")
	case "+CRSM":
		return s.file(value)
	case "+CMEE", "+IFC", "+CSCS", "+CGDCONT", "+CGEREP", "+CGATT":
	case "+CGACT":
		if strings.HasPrefix(value, "0") {
			s.session = false
		}
	default:
		return nil, failed
	}
	return nil, ok
}

// file reads one of the SIM's files.
func (s *state) file(value string) ([]string, string) {
	switch {
	case s.noSIM:
		return nil, noSIM
	case strings.HasPrefix(value, "176,12258"): // EF_ICCID, digits swapped in pairs
		return one(`+CRSM: 144,0,"98940200002143658709"`)
	case strings.HasPrefix(value, "176,28589"): // EF_AD: the network code has two digits
		return one(`+CRSM: 144,0,"00000002"`)
	}
	return one("+CRSM: 106,130") // there is none
}

// leading returns the number that a text begins with; 0 where there is none.
func leading(text string) int {
	n, _ := strconv.Atoi(strings.TrimRight(strings.SplitN(text, ",", 2)[0], " "))
	return n
}
