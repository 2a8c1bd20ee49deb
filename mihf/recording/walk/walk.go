// Package walk is a made-up recording of a walk, for the demonstration and for tests: a
// fade that recovers, then out of one Wi-Fi cell and into another of the same network.
//
//	 0 s  attached to AP 1, good signal
//	10 s  a fade to -83 dBm that recovers by 20 s
//	28 s  the walk out of the cell, 2.5 dB/s
//	39 s  the last frame (truth "loss"); a second later the station notices
//	41 s  attached to AP 2; the address is kept, IPv6 is tentative for a moment
//	42 s  the default route is back: the path is usable, for IPv4 first; good signal
//	      to the end
//
// The recording is made by [Generate] from [Seed] and is the same each time; the file in
// this folder is its output.
package walk

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"mihf.dev/mihf"
	"mihf.dev/mihf/recording"
)

// Seed makes the recording that is kept.
const Seed = 21

// The moments that tests and the demonstration name, in seconds from the start.
const (
	FadeBegin  = 10.0
	FadeEnd    = 20.0
	WalkBegin  = 28.0
	LastFrame  = 39.2
	Disconnect = 40.2
	Associated = 41.2
	Usable     = 41.9
	End        = 58.0
)

// The identities in the recording.
const (
	AP1  mihf.PoA = "02:00:00:00:01:01"
	AP2  mihf.PoA = "02:00:00:00:01:02"
	SSID          = "campus"
	Name          = "wlan0"
)

// Link is the id of the one link.
var Link = mihf.NewLinkID(mihf.LinkWiFi, hardware)

const hardware = "02:00:00:00:00:07"

// Addresses of the link and its gateways.
var (
	IPv4     = netip.MustParsePrefix("192.0.2.57/24")
	IPv6     = netip.MustParsePrefix("2001:db8:7::57/64")
	gateway4 = netip.MustParseAddr("192.0.2.1")
	gateway6 = netip.MustParseAddr("fe80::1")
)

//go:embed walk.jsonl
var data []byte

// Open returns a reader of the recording that is kept.
func Open() *recording.Reader {
	r, err := recording.NewReader(bytes.NewReader(data))
	if err != nil {
		panic("walk: " + err.Error()) // a test reads it to its end
	}
	return r
}

// Generate writes the recording that a seed makes.
func Generate(w io.Writer, seed uint64) error {
	out, err := recording.NewWriter(w, recording.Header{
		Node: "demo", Sensors: []string{"rtnl", "nl80211"}, Seed: mihf.Some(seed),
		Description: "made-up walk: a fade that recovers, then out of one cell and into another",
	}, recording.Base)
	if err != nil {
		return fmt.Errorf("generate a walk: %w", err)
	}
	all := append(attachment(), signal(seed)...)
	slices.SortStableFunc(all, func(a, b mihf.Observation) int { return int(a.At - b.At) })
	for i := range all {
		if err := out.Write(&all[i]); err != nil {
			return fmt.Errorf("generate a walk: %w", err)
		}
	}
	return nil
}

func at(seconds float64) mihf.Time {
	return recording.Base.Add(time.Duration(math.Round(seconds*1000)) * time.Millisecond)
}

// level is the mean signal in dBm: a line through these points.
func level(s float64) float64 {
	points := [...]struct{ s, dbm float64 }{
		{0, -58},
		{FadeBegin, -58},
		{15.5, -83},
		{16.3, -83},
		{FadeEnd, -60},
		{WalkBegin, -60},
		{LastFrame, -88},
		{Associated, -63},
		{48, -55},
		{End, -54},
	}
	for i := range points[1:] {
		a, b := points[i], points[i+1]
		if s <= b.s {
			return a.dbm + float64((b.dbm-a.dbm)*(s-a.s)/(b.s-a.s))
		}
	}
	return points[len(points)-1].dbm
}

const (
	interval  = 0.1 // seconds between readings
	noise     = 1.2 // dB, of each reading
	shadowing = 1.0 // dB, lasting
	lasting   = 0.4 // seconds
)

// signal makes the readings of the radio: level, noise of each reading, and shadowing
// that lasts.
func signal(seed uint64) []mihf.Observation {
	r := rand.New(rand.NewPCG(seed, 0))
	rho := math.Exp(-interval / lasting)
	var all []mihf.Observation
	shadow := 0.0
	for i := range int(End / interval) {
		s := interval*float64(i) + 0.05
		shadow = float64(rho*shadow) + float64(shadowing*math.Sqrt(1-float64(rho*rho))*r.NormFloat64())
		dbm := math.Round(level(s) + shadow + float64(noise*r.NormFloat64()))
		poa := AP1
		switch {
		case s > LastFrame && s < Associated:
			continue
		case s > LastFrame:
			poa = AP2
		}
		o := mihf.Observation{At: at(s), Kind: mihf.ObsRadio, Sensor: "nl80211", Link: Link, PoA: poa}
		o.Values.Set(mihf.ParamRSSI, dbm)
		o.Values.Set(mihf.ParamTxPHYRate, phyRate(dbm))
		all = append(all, o)
	}
	return all
}

// phyRate is what rate control picks at a signal: 802.11n, 20 MHz, one stream.
func phyRate(dbm float64) float64 {
	for _, step := range [...]struct{ dbm, mbps float64 }{
		{-64, 65}, {-66, 58.5}, {-70, 52}, {-74, 39}, {-77, 26}, {-79, 19.5}, {-82, 13},
	} {
		if dbm >= step.dbm {
			return step.mbps * 1e6
		}
	}
	return 6.5e6
}
