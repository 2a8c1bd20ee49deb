package recording_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/mihf"
	"mihf.dev/mihf/recording"
)

// small is a made-up trace with every kind of row.
const small = `t_s,row,poa,rssi_dbm,rsrp_dbm,rsrq_db,sinr_db,rate_mbps,rtt_ms,kind,until_s,remark
0,blind,,,,,,,,,0.5,starting
0.5,serving,ap1,-61.5,,,,65,,,,
0.5,neighbour,ap2,-70,,,,,,inter,,
0.75,probe,,,,,,,12.5,,,
1,serving,c1,,-101,-11,3,40,,,,a throughput
1.5,serving,ap1,75,,,,,,,,not a signal

2,truth,,,,,,,,blackout,4.25,
`

func TestImportTrace(t *testing.T) {
	got, err := recording.ImportTrace(strings.NewReader(small), "")
	if err != nil {
		t.Fatal(err)
	}
	link := mihf.NewLinkID(mihf.LinkWiFi, "trace")
	at := func(s float64) mihf.Time { return recording.Base.Add(time.Duration(s * 1e9)) }
	var want []mihf.Observation
	add := func(s float64, k mihf.ObservationKind, f func(o *mihf.Observation)) {
		o := mihf.Observation{At: at(s), Kind: k, Link: link, Sensor: "trace"}
		f(&o)
		want = append(want, o)
	}
	add(0, mihf.ObsTruth, func(o *mihf.Observation) { o.Truth = &mihf.Truth{Kind: "blind", Until: at(0.5)} })
	add(0.5, mihf.ObsAssociation, func(o *mihf.Observation) {
		o.Association = &mihf.Association{State: mihf.AssociationAuthorised, PoA: "ap1"}
	})
	add(0.5, mihf.ObsRadio, func(o *mihf.Observation) {
		o.PoA = "ap1"
		o.Values.Set(mihf.ParamRSSI, -61.5)
		o.Values.Set(mihf.ParamTxPHYRate, 65e6)
	})
	add(0.5, mihf.ObsDetected, func(o *mihf.Observation) {
		o.Detected = &mihf.Detected{PoA: "ap2"}
		o.Detected.Values.Set(mihf.ParamRSSI, -70)
		o.Detected.Values.Set(mihf.ParamCoChannel, 0)
	})
	add(0.75, mihf.ObsRadio, func(o *mihf.Observation) { o.Values.Set(mihf.ParamRTT, 0.0125) })
	add(1, mihf.ObsRadio, func(o *mihf.Observation) {
		o.PoA = "c1"
		o.Values.Set(mihf.ParamRSRP, -101)
		o.Values.Set(mihf.ParamRSRQ, -11)
		o.Values.Set(mihf.ParamSINR, 3)
	})
	add(1.5, mihf.ObsRadio, func(o *mihf.Observation) { o.PoA = "ap1" })
	add(2, mihf.ObsTruth, func(o *mihf.Observation) { o.Truth = &mihf.Truth{Kind: "blackout", Until: at(4.25)} })
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestBadTrace(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "names no column t_s"},
		{"t_s,poa\n", "names no column row"},
		{"t_s,row\n1\n", "line 2: 1 fields, but 2 columns"},
		{"t_s,row\n1,serving\nx,serving\n", `line 3: t_s "x" is not a number`},
		{"t_s,row\n,serving\n", "line 2: t_s is missing"},
		{"t_s,row\nNaN,serving\n", "line 2: t: "},
		{"t_s,row\n1,walking\n", `line 2: row "walking" is not known`},
		{"t_s,row,until_s\n1,truth,1e99\n", "line 2: until_s: "},
		{"t_s,row,until_s\n1,blind,0.5\n", "line 2: until_s: 0.5 s is before it begins"},
	} {
		if _, err := recording.ImportTrace(strings.NewReader(c.in), ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.in, err, c.want)
		}
	}
	tr, err := recording.NewTraceReader(strings.NewReader("t_s,row,rssi_dbm,rate_mbps\n1,serving,75,\n2,serving,-60,-1\n3,serving,-60,NaN\n"), "wifi-00000001")
	if err != nil {
		t.Fatal(err)
	}
	if o := read(t, tr)[1]; o.Link != "wifi-00000001" || tr.Refused() != 3 {
		t.Errorf("link %q, refused %d", o.Link, tr.Refused())
	}
}

func FuzzTrace(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte("row,t_s\nserving,1e9\nprobe,-1\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		tr, err := recording.NewTraceReader(bytes.NewReader(in), "wifi-00000001")
		if err != nil {
			return
		}
		var le *recording.LineError
		for err == nil || errors.As(err, &le) {
			var o mihf.Observation
			err = tr.Read(&o)
		}
	})
}

// Traces of real walks, in the folders of MIHF_TRACES: every row can be read.
func TestRealTraces(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(os.Getenv("MIHF_TRACES"), "*", "*.csv.gz"))
	if os.Getenv("MIHF_TRACES") == "" || len(files) == 0 {
		t.Skip("MIHF_TRACES names no folder with */*.csv.gz")
	}
	sets := map[string]bool{}
	for _, name := range files {
		if set := filepath.Dir(name); testing.Short() && sets[set] {
			continue
		}
		sets[filepath.Dir(name)] = true
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		z, err := recording.Decompress(f)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := recording.NewTraceReader(z, "wifi-00000001")
		if err != nil {
			t.Fatal(err)
		}
		n, last := 0, mihf.Time(0)
		var o mihf.Observation
		for ; ; n++ {
			if err = tr.Read(&o); err != nil {
				break
			}
			if o.At < last {
				t.Fatalf("%s: row %d goes back in time", name, n)
			}
			last = o.At
		}
		if err.Error() != "EOF" || n < 10 || tr.Refused() > uint64(n/100) {
			t.Errorf("%s: %d rows, %d values refused, %v", name, n, tr.Refused(), err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Open tells a recording from a trace.
func TestOpen(t *testing.T) {
	for _, in := range []string{head + `{"t":0,"kind":"resync"}`, "t_s,row\n0,probe\n"} {
		s, err := recording.Open(strings.NewReader(in), "wifi-00000001")
		if err != nil {
			t.Fatal(err)
		}
		if all := read(t, s); len(all) != 1 || all[0].At != recording.Base {
			t.Errorf("%.20q: %+v", in, all)
		}
	}
	made, err := recording.Open(strings.NewReader("t_s,row,rssi_dbm\n0,serving,-60\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	if all := read(t, made); len(all) != 2 || all[0].Kind != mihf.ObsAssociation || all[1].Link.Type() != mihf.LinkWiFi {
		t.Errorf("a link was made up: %+v", all)
	}
	for _, in := range []string{"", "nonsense", "{}", "\x1f\x8b"} {
		if _, err := recording.Open(strings.NewReader(in), ""); err == nil {
			t.Errorf("%q was opened", in)
		}
	}
}
