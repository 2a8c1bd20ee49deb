package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// checker collects what is wrong. Its methods leave the default where a key is not given
// or its value is wrong, so that what depends on it can still be checked.
type checker struct {
	file   string
	lines  map[string]int
	errors Errors
}

func (c *checker) add(line int, key, reason string) {
	c.errors = append(c.errors, &Error{File: c.file, Line: line, Key: key, Reason: reason})
}

func (c *checker) fail(key, format string, args ...any) {
	c.add(c.lines[key], key, fmt.Sprintf(format, args...))
}

func (c *checker) sorted() Errors {
	slices.SortStableFunc(c.errors, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	return c.errors
}

func (c *checker) duration(key string, raw *string, v *time.Duration, low, high time.Duration) {
	if raw == nil {
		return
	}
	d, err := time.ParseDuration(*raw)
	switch {
	case err != nil:
		c.fail(key, `%q is not a duration; write a number with its unit, for example "30ms", "2s", "5m"`, *raw)
	case d < low || d > high:
		c.fail(key, "%v is out of range; give %v to %v", d, low, high)
	default:
		*v = d
	}
}

func (c *checker) count(key string, raw *int, v *int, low, high int) {
	switch {
	case raw == nil:
	case *raw < low || *raw > high:
		c.fail(key, "%d is out of range; give %d to %d", *raw, low, high)
	default:
		*v = *raw
	}
}

func (c *checker) share(key string, raw *float64, v *float64) {
	switch {
	case raw == nil:
	case !(*raw >= 0 && *raw <= 1): // also not a number
		c.fail(key, "%v is out of range; give 0 to 1", *raw)
	default:
		*v = *raw
	}
}

func (c *checker) text(key string, raw *string, v *string, form *regexp.Regexp, what string) {
	switch {
	case raw == nil:
	case *raw != "" && !form.MatchString(*raw):
		c.fail(key, "%q is not possible; give %s", *raw, what)
	default:
		*v = *raw
	}
}

func (c *checker) oneOf(key string, raw *string, v *string, names ...string) {
	switch {
	case raw == nil:
	case !slices.Contains(names, *raw):
		c.fail(key, "%q is not known; give one of %s", *raw, strings.Join(names, ", "))
	default:
		*v = *raw
	}
}

// path takes an absolute path: the daemon's working directory is nobody's business.
func (c *checker) path(key string, raw *string, v *string) {
	switch {
	case raw == nil:
	case *raw != "" && !filepath.IsAbs(*raw):
		c.fail(key, "%q is not an absolute path; begin it with /", *raw)
	case strings.ContainsFunc(*raw, func(r rune) bool { return !unicode.IsPrint(r) }):
		c.fail(key, "%q has characters that cannot be shown; give a path without them", *raw)
	default:
		*v = *raw
	}
}

// names takes a list of texts that people can read.
func (c *checker) names(key string, raw, v *[]string) {
	if raw == nil {
		return
	}
	for _, s := range *raw {
		if s == "" || len(s) > 256 || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
			c.fail(key, "%q is not possible; give 1 to 256 characters that can be shown", s)
			return
		}
	}
	*v = append([]string(nil), *raw...) // nil: none
}

// mode takes the socket's access mode, as chmod does.
func (c *checker) mode(key string, raw *string, v *fs.FileMode) {
	if raw == nil {
		return
	}
	m, err := strconv.ParseUint(*raw, 8, 32)
	if err != nil || m&^0o666 != 0 || m&0o600 != 0o600 {
		c.fail(key, `%q is not a mode for a socket; give three octal digits that let at least the owner read and write, for example "0660"`, *raw)
		return
	}
	*v = fs.FileMode(m)
}

func (c *checker) level(key string, raw *string, v *slog.Level) {
	if raw == nil {
		return
	}
	i := slices.Index(levelNames, *raw)
	if i < 0 {
		c.fail(key, "%q is not known; give one of %s", *raw, strings.Join(levelNames, ", "))
		return
	}
	*v = slog.LevelDebug + slog.Level(4*i)
}

var levelNames = []string{"debug", "info", "warn", "error"}

// address takes host:port, where the host is an address, a name or empty for all.
func (c *checker) address(key string, raw *string, v *string) {
	if raw == nil || *raw == "" {
		return
	}
	_, port, err := net.SplitHostPort(*raw)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		c.fail(key, `%q is not an address with a port; give for example "127.0.0.1:4552" or "[::1]:4552"`, *raw)
		return
	}
	*v = *raw
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// must adds an error about a relation of two values.
func (c *checker) must(holds bool, key, format string, args ...any) {
	if !holds {
		c.fail(key, format, args...)
	}
}
