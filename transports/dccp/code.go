package dccp

import (
	"fmt"
	"strconv"
	"strings"
)

// ResetCode says why a connection was reset (RFC 4340, section 5.6).
type ResetCode uint8

// Reset codes.
const (
	ResetUnspecified ResetCode = iota
	ResetClosed
	ResetAborted
	ResetNoConnection
	ResetPacketError
	ResetOptionError
	ResetMandatoryError
	ResetConnectionRefused
	ResetBadServiceCode
	ResetTooBusy
	ResetBadInitCookie
	ResetAggressionPenalty
	ResetEncapsulatedPortReuse // RFC 6773, section 5.1
)

var resetNames = [...]string{
	"unspecified", "closed", "aborted", "no connection", "packet error", "option error",
	"mandatory option not understood", "connection refused", "bad service code", "too busy",
	"bad init cookie", "aggression penalty", "encapsulated port reuse",
}

func (c ResetCode) String() string {
	if int(c) < len(resetNames) {
		return resetNames[c]
	}
	return fmt.Sprintf("reset code %d", uint8(c))
}

// ServiceCode names the application that a client wants (RFC 4340, section 8.1.2).
type ServiceCode uint32

// ServiceInvalid is the one code that no service has.
const ServiceInvalid ServiceCode = 1<<32 - 1

// serviceText reports whether c may stand in the "SC:" form.
func serviceText(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte("-_+.*/?@", c) >= 0
}

// String returns the "SC:" form where the code has one, else the decimal form "SC=".
func (s ServiceCode) String() string {
	b := []byte{byte(s >> 24), byte(s >> 16), byte(s >> 8), byte(s)}
	text := strings.TrimRight(string(b), " ")
	for i := range len(text) {
		if !serviceText(text[i]) {
			text = ""
			break
		}
	}
	if text == "" {
		return "SC=" + strconv.FormatUint(uint64(s), 10)
	}
	return "SC:" + text
}

// ParseServiceCode reads one of the three forms: SC:text, SC=decimal, SC=xHEX.
func ParseServiceCode(s string) (ServiceCode, error) {
	if text, ok := strings.CutPrefix(s, "SC:"); ok {
		return serviceFromText(text)
	}
	digits, ok := strings.CutPrefix(s, "SC=")
	base := 10
	if len(digits) > 0 && (digits[0] == 'x' || digits[0] == 'X') {
		digits, base = digits[1:], 16
	}
	v, err := strconv.ParseUint(digits, base, 32)
	if !ok || err != nil || ServiceCode(v) == ServiceInvalid {
		return 0, fmt.Errorf("dccp: %q is no service code: write SC:text with 1 to 4 characters, SC=decimal or SC=xHEX, below %d", s, uint32(ServiceInvalid))
	}
	return ServiceCode(v), nil
}

func serviceFromText(text string) (ServiceCode, error) {
	if len(text) < 1 || len(text) > 4 {
		return 0, fmt.Errorf("dccp: service code SC:%s has %d characters, not 1 to 4", text, len(text))
	}
	var v ServiceCode
	for i := range 4 {
		c := byte(' ')
		if i < len(text) {
			c = text[i]
			if !serviceText(c) {
				return 0, fmt.Errorf("dccp: service code SC:%s: character %q is not allowed", text, c)
			}
		}
		v = v<<8 | ServiceCode(c)
	}
	return v, nil
}
