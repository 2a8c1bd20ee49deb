package recording_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
	"mihf.dev/mihf/recording"
)

// equal compares observations field by field, also those that are not exported.
var equal = cmp.Options{
	cmp.AllowUnexported(mihf.Values{}),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
	cmp.AllowUnexported(mihf.Opt[time.Duration]{}, mihf.Opt[float64]{}),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	cmp.Comparer(func(a, b mihf.Opt[uint64]) bool { return a == b }),
}

func write(t testing.TB, h recording.Header, start mihf.Time, obs ...mihf.Observation) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := recording.NewWriter(&b, h, start)
	if err != nil {
		t.Fatal(err)
	}
	for i := range obs {
		if err := w.Write(&obs[i]); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func read(t testing.TB, s recording.Source) []mihf.Observation {
	t.Helper()
	var all []mihf.Observation
	for {
		var o mihf.Observation
		err := s.Read(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
}

// "What Writer wrote, Reader gives back equal, for every kind of observation."
func TestRoundTrip(t *testing.T) {
	seen := map[mihf.ObservationKind]bool{}
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.SliceOfN(observations(), 1, 5).Draw(rt, "observations")
		for _, o := range want {
			seen[o.Kind] = true
		}
		r, err := recording.NewReader(bytes.NewReader(write(t, recording.Header{}, recording.Base, want...)))
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, read(t, r), equal); diff != "" {
			rt.Fatalf("(-want +got)\n%s", diff)
		}
		if r.Refused() != 0 {
			rt.Fatalf("%d values refused", r.Refused())
		}
	})
	for k := mihf.ObsLink; k <= mihf.ObsTruth; k++ {
		if !seen[k] {
			t.Errorf("kind %v was never tried", k)
		}
	}
}

// "Times are exact to the nanosecond within 26 days of the start."
func TestTimesAreExact(t *testing.T) {
	const start = mihf.Time(123456789012345)
	rapid.Check(t, func(rt *rapid.T) {
		d := time.Duration(rapid.Int64Range(int64(-time.Hour)+1, int64(26*24*time.Hour)).Draw(rt, "t"))
		b := write(t, recording.Header{}, start, mihf.Observation{Kind: mihf.ObsResync, At: start.Add(d)})
		r, err := recording.NewReader(bytes.NewReader(b))
		if err != nil {
			rt.Fatal(err)
		}
		if got := read(t, r)[0].At.Sub(recording.Base); got != d {
			rt.Fatalf("%v came back as %v", d, got)
		}
	})
}

func TestHeader(t *testing.T) {
	want := recording.Header{
		Node: "gw\x07", Started: time.Date(2024, 3, 1, 12, 0, 0, 5e8, time.UTC),
		Sensors: []string{"rtnl", "nl80211"}, Description: "a walk", Seed: mihf.Some[uint64](0),
	}
	r, err := recording.NewReader(bytes.NewReader(write(t, want, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, r.Header(), equal); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

const head = `{"format":"mihf-recording","version":1}` + "\n"

// "Fields that are not known are skipped; a newer version of the format is refused."
func TestBadHeader(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "it is empty"},
		{"{}\n", "this is not a recording"},
		{"t_s,row\n", "this is not a recording"},
		{`{"format":"mihf-recording","version":2}`, "version 2 of the format; this program reads versions 1 to 1"},
		{`{"format":"mihf-recording","version":0}`, "version 0"},
		{`{"format":"mihf-recording","version":1,"started":"yesterday"}`, "header: "},
		{strings.Repeat("x", recording.MaxLine+1), "longer than"},
	} {
		_, err := recording.NewReader(strings.NewReader(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.50q: error %v, want %q", c.in, err, c.want)
		}
	}
	r, err := recording.NewReader(strings.NewReader(`{"format":"mihf-recording","version":1,"new":[{}]}` + "\n\n" +
		`{"t":0,"kind":"radio","new":{"a":1},"values":{"rssi_dbm":-60,"new_db":3}}`))
	if err != nil {
		t.Fatal(err)
	}
	if o := read(t, r)[0]; o.Values.Len() != 1 {
		t.Errorf("%d values", o.Values.Len())
	}
}

// "An error names its line; reading may go on with the next."
func TestBadLine(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`nonsense`, "invalid character"},
		{`[1]`, "cannot unmarshal"},
		{`{"kind":"radio"}`, `"t" is missing`},
		{`{"t":"1","kind":"radio"}`, "cannot unmarshal"},
		{`{"t":1e300,"kind":"radio"}`, "t: time of 1e+300 s"},
		{`{"t":-4000,"kind":"radio"}`, "before the start"},
		{`{"t":1,"kind":"radio","age_s":2e9}`, "age_s"},
		{`{"t":1,"kind":"radio","age_s":-0.5}`, "age_s: -0.5 s is below 0"},
		{`{"t":1,"kind":"resume","gap_s":-28800}`, "gap_s: -28800 s is below 0"},
		{`{"t":1,"kind":"truth","truth":{"kind":"loss","until":0.5}}`, "truth: until: 0.5 s is before it begins"},
		{`{"t":1,"kind":"link","facts":{"oper_state":"up","index":-1}}`, "facts: index: -1 is below 0"},
		{`{"t":1,"kind":"link","facts":{"oper_state":"up","mtu_bytes":-1500}}`, "facts: mtu_bytes: -1500 is below 0"},
		{`{"t":1,"kind":"link","facts":{"oper_state":"up","addresses":[{"prefix":""}]}}`, "facts: addresses: one has no prefix"},
		{`{"t":1}`, `kind "" is not known`},
		{`{"t":1,"kind":"none"}`, `kind "none" is not known`},
		{`{"t":1,"kind":"link"}`, `kind link without "facts"`},
		{`{"t":1,"kind":"link","facts":{}}`, `facts: oper_state "" is not known`},
		{`{"t":1,"kind":"link","facts":{"oper_state":"up","addresses":[{"prefix":"x"}]}}`, "netip"},
		{`{"t":1,"kind":"association","association":{"state":"dreaming"}}`, `association: state "dreaming" is not known`},
		{`{"t":1,"kind":"truth"}`, `without "truth"`},
		{`{"t":1,"kind":"peer","peer":{"peer":""}}`, `without "peer"`},
		{`{"t":1,"kind":"radio","poa":"\\x0"}`, "bad escape"},
		{strings.Repeat(" ", recording.MaxLine), "longer than"},
	} {
		r, err := recording.NewReader(strings.NewReader(head + c.in + "\n" + `{"t":7,"kind":"radio"}`))
		if err != nil {
			t.Fatal(err)
		}
		var o mihf.Observation
		err = r.Read(&o)
		var le *recording.LineError
		if !errors.As(err, &le) || le.Line != 2 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: error %v, want %q in line 2", c.in, err, c.want)
		}
		if err := r.Read(&o); err != nil || o.At != recording.Base.Add(7*time.Second) {
			t.Errorf("%.60s: the line behind it: %v, %v", c.in, o.At, err)
		}
	}
}

// A recorder that was killed leaves half a line.
func TestCutOff(t *testing.T) {
	r, err := recording.NewReader(strings.NewReader(head + `{"t":1,"kind":"radio"}` + "\n" + `{"t":2,"kin`))
	if err != nil {
		t.Fatal(err)
	}
	var o mihf.Observation
	if err := r.Read(&o); err != nil {
		t.Fatal(err)
	}
	if err := r.Read(&o); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), "line 3: the input ends within the line: ") {
		t.Errorf("error %v, want %v", err, io.ErrUnexpectedEOF)
	}
	if err := r.Read(&o); !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want %v", err, io.EOF)
	}
}

// "A value that its parameter cannot have stays absent; Refused counts such values."
func TestRefused(t *testing.T) {
	r, err := recording.NewReader(strings.NewReader(head + `{"t":1,"kind":"radio","values":{"rssi_dbm":75,"rsrp_dbm":-90}}`))
	if err != nil {
		t.Fatal(err)
	}
	o := read(t, r)[0]
	if _, ok := o.Values.Get(mihf.ParamRSSI); ok || !o.Values.Has(mihf.ParamRSRP) || r.Refused() != 1 {
		t.Errorf("values %+v, refused %d", o.Values, r.Refused())
	}
}

// "SSIDs are 0..32 arbitrary octets": the literal eight characters and the four octets
// that they name stay different, and both come back.
func TestOctets(t *testing.T) {
	for _, ssid := range []string{"", "\xf0\x9f\xa7\x8a", `F09FA78A`, "\xc4\xe3\xba\xc3", "caf\xe9"} {
		want := mihf.Observation{
			At: recording.Base, Kind: mihf.ObsAssociation, Link: mihf.LinkID("wlan\xff"),
			Association: &mihf.Association{SSID: []byte(ssid)},
		}
		r, err := recording.NewReader(bytes.NewReader(write(t, recording.Header{}, recording.Base, want)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, read(t, r)[0], equal); diff != "" {
			t.Errorf("SSID %q (-want +got)\n%s", ssid, diff)
		}
	}
}

func TestDecompress(t *testing.T) {
	plain := write(t, recording.Header{Description: "x"}, recording.Base)
	var z bytes.Buffer
	zw := gzip.NewWriter(&z)
	_, _ = zw.Write(plain)
	_ = zw.Close()
	for _, in := range [][]byte{plain, z.Bytes()} {
		d, err := recording.Decompress(bytes.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := recording.NewReader(d); err != nil || r.Header().Description != "x" {
			t.Errorf("header %+v, %v", r, err)
		}
	}
	if _, err := recording.Decompress(strings.NewReader("\x1f\x8bx")); err == nil {
		t.Error("broken gzip is taken")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteFails(t *testing.T) {
	if _, err := recording.NewWriter(failing{}, recording.Header{}, 1); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
	w, err := recording.NewWriter(io.Discard, recording.Header{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	o := mihf.Observation{Kind: mihf.ObsCondition, Condition: &mihf.SensorCondition{Text: strings.Repeat("x", recording.MaxLine)}}
	if err := w.Write(&o); err == nil {
		t.Error("a line that no reader takes was written")
	}
}

// "No input makes a reader panic": and what is read can be written and read again.
func FuzzReader(f *testing.F) {
	f.Add([]byte(head + `{"t":0.1,"kind":"radio","link":"wifi-00000001","values":{"rssi_dbm":-61}}`))
	f.Add([]byte(head + `{"t":1,"kind":"link","facts":{"name":"w\\xff","admin_up":true,"carrier":true,"oper_state":"up","addresses":[{"prefix":"10.0.0.2/24"}],"default_routes":[{"gateway":"10.0.0.1"}]}}`))
	f.Add([]byte(head + `{"t":1,"kind":"association","association":{"state":"disconnected","ssid":"/w==","cause":"beacon_loss"}}` + "\n{}\n"))
	f.Add([]byte(head + `{"t":1,"kind":"radio","scanning":true,"lost":true,"reason":"removed"}`))
	f.Add([]byte(head + `{"t":-1,"kind":"truth","truth":{"kind":"loss","until":3}}` + "\n" + `{"t":2,"kin`))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := recording.NewReader(bytes.NewReader(in))
		if err != nil {
			return
		}
		for {
			var o mihf.Observation
			err := r.Read(&o)
			var le *recording.LineError
			if errors.As(err, &le) {
				continue
			}
			if err != nil {
				return
			}
			again, err := recording.NewReader(bytes.NewReader(write(t, r.Header(), recording.Base, o)))
			if err != nil {
				t.Fatal(err)
			}
			got := read(t, again)[0]
			if got.At.Sub(o.At).Abs() > time.Millisecond { // exact only within 26 days
				t.Fatalf("time %v came back as %v", o.At, got.At)
			}
			o.At, o.Age, o.Gap, got.At, got.Age, got.Gap = 0, 0, 0, 0, 0, 0
			if o.Truth != nil {
				o.Truth.Until, got.Truth.Until = 0, 0
			}
			if diff := cmp.Diff(o, got, equal); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
		}
	})
}
