package link_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mihf.dev/integration/link"
)

// play shows what the conditions become.
func play(s link.Schedule) (lines []string) {
	var up, down link.Conditions
	for _, step := range s {
		step.Change(&up, &down)
		lines = append(lines, fmt.Sprintf("%v up %v down %v delay %v loss %v outage %v", step.At, up.RateBPS/1e6, down.RateBPS/1e6, up.Delay, down.Loss, up.Outage))
	}
	return lines
}

func TestReadTrace(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"own columns", "t_s,up_mbps,down_mbps,delay_ms,loss\n0,1,8,20,\n1.5,2,,,0.25\n\n2,,4,10,0\n", []string{
			"0s up 1 down 8 delay 20ms loss 0 outage 0",
			"1.5s up 2 down 8 delay 20ms loss 0.25 outage 0",
			"2s up 2 down 4 delay 10ms loss 0 outage 0",
		}},
		{"a rate of 0 stalls until the next", "t_s,rate_mbps\n0,5\n1,0\n2,3", []string{
			"0s up 5 down 5 delay 0s loss 0 outage 0",
			"1s up 5 down 5 delay 0s loss 0 outage 2",
			"2s up 3 down 3 delay 0s loss 0 outage 0",
		}},
		{"a measured trace", "t_s,row,poa,rssi_dbm,rate_mbps,kind,until_s\n0,serving,a,-50,6,,\n1,neighbour,b,-60,,inter,\n2,truth,,,,blackout,4.5\n3,serving,a,-80,2,,\n5,truth,,,,roam,", []string{
			"0s up 6 down 6 delay 0s loss 0 outage 0",
			"2s up 6 down 6 delay 0s loss 0 outage 1",
			"3s up 2 down 2 delay 0s loss 0 outage 1",
			"4.5s up 2 down 2 delay 0s loss 0 outage 0",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := link.ReadTrace(strings.NewReader(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, play(s)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadTraceRefuses(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "no line with the columns"},
		{"a,b\n", "no column t_s"},
		{"t_s,loss\n1\n", "line 2: 1 fields, but 2 columns"},
		{"t_s,loss\n1,0\n,0\n", "line 3: t_s is missing"},
		{"t_s,loss\nx,0\n", `t_s "x" is no number`},
		{"t_s,rate_mbps\n1,-2\n", `rate_mbps "-2"`},
		{"t_s,rate_mbps\n1,NaN\n", `rate_mbps "NaN"`},
		{"t_s,loss\n1,1.5\n", "loss 1.5 is above 1"},
		{"t_s,delay_ms\n1,3600001\n", "delay_ms"},
	} {
		if _, err := link.ReadTrace(strings.NewReader(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.text, err, tc.want)
		}
	}
}

func TestMerge(t *testing.T) {
	s := link.Merge(link.Rates(3*time.Second, 1e6), link.Outages(link.Stall, time.Second, 4*time.Second), link.Rates(0, 9e6))
	want := []string{
		"0s up 9 down 9 delay 0s loss 0 outage 0",
		"1s up 9 down 9 delay 0s loss 0 outage 2",
		"3s up 1 down 1 delay 0s loss 0 outage 2",
		"5s up 1 down 1 delay 0s loss 0 outage 0",
	}
	if diff := cmp.Diff(want, play(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add("t_s,up_mbps,down_mbps,delay_ms,loss\n0,1,8,20,\n1.5,2,,,0.25\n")
	f.Add("t_s,row,kind,until_s\n2,truth,blackout,4\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := link.ReadTrace(strings.NewReader(text))
		if err != nil {
			return
		}
		var up, down link.Conditions
		last := time.Duration(0)
		for _, step := range s {
			step.Change(&up, &down)
			for _, c := range []link.Conditions{up, down} {
				if err := c.Check(); err != nil {
					t.Errorf("a trace gives %v", err)
				}
			}
			if step.At < last {
				t.Errorf("%v comes after %v", step.At, last)
			}
			last = step.At
		}
	})
}
