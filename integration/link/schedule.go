package link

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Step is a change of a link at a time of a schedule.
type Step struct {
	At     time.Duration // from the start
	Change func(up, down *Conditions)
}

// Schedule is what happens to a link, in the order of time.
type Schedule []Step

// Merge joins schedules; what one does not change the others do.
func Merge(schedules ...Schedule) Schedule {
	all := slices.Concat(schedules...)
	slices.SortStableFunc(all, func(a, b Step) int { return int(max(-1, min(1, a.At-b.At))) })
	return all
}

// Outages interrupts both directions at a time, for a time.
func Outages(how Outage, at, lasts time.Duration) Schedule {
	set := func(o Outage) func(up, down *Conditions) {
		return func(up, down *Conditions) { up.Outage, down.Outage = o, o }
	}
	return Schedule{{at, set(how)}, {at + lasts, set(NoOutage)}}
}

// Rates sets the rate of both directions at a time.
func Rates(at time.Duration, bps float64) Schedule {
	return Schedule{{at, func(up, down *Conditions) { up.RateBPS, down.RateBPS = bps, bps }}}
}

// maxSteps bounds what a trace gives.
const maxSteps = 1 << 20

// ReadTrace makes a schedule of a trace in CSV. The first line names the columns, which are found
// by name: t_s, and at least one of the others; an empty field changes nothing.
//
//	t_s        seconds from the start, in order
//	rate_mbps  of both directions; 0 stalls them until the next rate
//	up_mbps, down_mbps  likewise of one
//	delay_ms   of each direction
//	loss       share of the packets, 0 to 1, of each direction
//	row, until_s  in a row "truth" with until_s there is a blackout from t_s until then; rows
//	           that are neither "serving" nor "truth" nor empty are skipped
func ReadTrace(r io.Reader) (Schedule, error) {
	lines := bufio.NewScanner(r)
	if !lines.Scan() {
		return nil, fmt.Errorf("link: a trace: no line with the columns: %w", errors.Join(lines.Err(), io.ErrUnexpectedEOF))
	}
	columns := strings.Split(strings.TrimSpace(lines.Text()), ",")
	if !slices.Contains(columns, "t_s") {
		return nil, fmt.Errorf("link: a trace: no column t_s in %q", columns)
	}
	var all []Schedule
	for n := 2; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		s, err := traceRow(columns, strings.Split(text, ","))
		if err != nil {
			return nil, fmt.Errorf("link: a trace: line %d: %w", n, err)
		}
		if all = append(all, s); len(all) > maxSteps {
			return nil, fmt.Errorf("link: a trace: more than %d rows", maxSteps)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("link: a trace: %w", err)
	}
	return Merge(all...), nil
}

func traceRow(columns, fields []string) (Schedule, error) {
	if len(fields) != len(columns) {
		return nil, fmt.Errorf("%d fields, but %d columns", len(fields), len(columns))
	}
	row, value := "", make(map[string]float64)
	for i, c := range columns {
		if c == "row" {
			row = fields[i]
			continue
		}
		if !traceColumn(c) || fields[i] == "" {
			continue
		}
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil || !(v >= 0 && v < 1e9) {
			return nil, fmt.Errorf("%s %q is no number from 0 to 1e9", c, fields[i])
		}
		value[c] = v
	}
	t, ok := value["t_s"]
	if !ok {
		return nil, errors.New("t_s is missing")
	}
	at := seconds(t)
	switch until, ends := value["until_s"]; {
	case row == "truth" && ends && until > t:
		return Outages(Blackout, at, seconds(until)-at), nil
	case row == "" || row == "serving":
		return traceStep(at, value)
	default:
		return nil, nil
	}
}

func traceColumn(c string) bool {
	switch c {
	case "t_s", "until_s", "rate_mbps", "up_mbps", "down_mbps", "delay_ms", "loss":
		return true
	default:
		return false
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func traceStep(at time.Duration, value map[string]float64) (Schedule, error) {
	if loss := value["loss"]; loss > 1 {
		return nil, fmt.Errorf("loss %v is above 1", loss)
	}
	if d := value["delay_ms"]; seconds(d/1e3) > time.Hour {
		return nil, fmt.Errorf("delay_ms %v is above an hour", d)
	}
	set := func(c *Conditions, own string) {
		for _, column := range []string{"rate_mbps", own} {
			if v, ok := value[column]; ok {
				c.setRate(v * 1e6)
			}
		}
		if v, ok := value["delay_ms"]; ok {
			c.Delay = seconds(v / 1e3)
		}
		if v, ok := value["loss"]; ok {
			c.Loss = v
		}
	}
	return Schedule{{at, func(up, down *Conditions) {
		set(up, "up_mbps")
		set(down, "down_mbps")
	}}}, nil
}

// setRate sets the rate, where 0 is a stall; a blackout stays one.
func (c *Conditions) setRate(bps float64) {
	switch {
	case bps > 0 && c.Outage == Stall:
		c.Outage = NoOutage
	case bps == 0 && c.Outage == NoOutage:
		c.Outage = Stall
	}
	if bps > 0 {
		c.RateBPS = bps
	}
}
