package cli

import (
	"testing"
	"time"
)

// What --since takes, by what it says at noon on a day.
func TestParseSince(t *testing.T) {
	zone := time.FixedZone("here", 2*3600)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, zone)
	for s, want := range map[string]time.Time{
		"15m":                  now.Add(-15 * time.Minute),
		"0s":                   now,
		"7d":                   time.Date(2026, 2, 22, 12, 0, 0, 0, zone),
		"2026-02-03":           time.Date(2026, 2, 3, 0, 0, 0, 0, zone),
		"2026-02-03 04:05":     time.Date(2026, 2, 3, 4, 5, 0, 0, zone),
		"2026-02-03 04:05:06":  time.Date(2026, 2, 3, 4, 5, 6, 0, zone),
		"2026-02-03T04:05:06":  time.Date(2026, 2, 3, 4, 5, 6, 0, zone),
		"2026-02-03T04:05:06Z": time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC),
		"11:59":                time.Date(2026, 3, 1, 11, 59, 0, 0, zone),
		"12:00:01":             time.Date(2026, 2, 28, 12, 0, 1, 0, zone), // yesterday
	} {
		if got, ok := parseSince(s, now); !ok || !got.Equal(want) {
			t.Errorf("%q is %v, %v; want %v", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "x", "-5m", "-1d", "1.5d", "99999999999d", "25:00", "2026-13-01", "15"} {
		if got, ok := parseSince(s, now); ok {
			t.Errorf("%q is %v", s, got)
		}
	}
}

func FuzzParseSince(f *testing.F) {
	for _, s := range []string{"15m", "7d", "11:59", "2026-02-03 04:05:06", "2026-02-03T04:05:06Z"} {
		f.Add(s)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		if got, ok := parseSince(s, now); ok && got.IsZero() && s != "0001-01-01" {
			t.Errorf("%q is no time", s)
		}
	})
}

// URLs that the library would take for something else are refused.
func TestCheckURLs(t *testing.T) {
	for s, secure := range map[string]bool{
		"nats://127.0.0.1:4222": false, "localhost": false, "localhost:1": false, "nats://a,tls://b:1": true, "nats://[::1]:4222, nats://b": false,
		"nats://someone@a": false,
	} {
		if got, err := checkURLs(s); got != secure || err != nil {
			t.Errorf("%q: TLS %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "unix:///run/mihf/mihfd.sock", "http://a", "nats://", "nats://a/b", "nats://a,", "nats://u:secret@a", "nats://a:x", "\x00"} {
		if _, err := checkURLs(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}
