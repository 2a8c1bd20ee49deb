package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the report for people: what was measured, beside its bare counterpart
// and the target.
func (r *Report) WriteTable(w io.Writer) error {
	var head strings.Builder
	m := &r.Machine
	fmt.Fprintf(&head, "%s, %d processors, Linux %s, %s, %s; %.0f s\n\n", m.CPU, m.Processors, m.Kernel, m.Go, m.At.Format("2006-01-02"), m.Seconds)
	t := tabwriter.NewWriter(&head, 0, 0, 2, ' ', 0)
	row := func(what, ours, bare, ratio, target string) {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", what, ours, bare, ratio, target) // Flush tells
	}
	row("", "ours", "bare", "ratio", "target")
	r.Fanout.rows(row)
	r.GRPC.rows("gRPC", row)
	r.NATS.rows("NATS", row)
	r.DBus.rows("D-Bus", row)
	if r.NATSInProcess != nil {
		r.NATSInProcess.rows("NATS in process", row)
	}
	if s := r.Stalled; s != nil {
		row(fmt.Sprintf("1 of %d stopped reading: the others' p99", s.Neighbours+1), micros(s.WithP99), micros(s.WithoutP99), number(s.RatioP99), "within the noise")
		row("  the worst of them", micros(s.WorstP99), "", "", "2 ms")
		row("  missed", fmt.Sprint(s.Missed), "", "", "0")
	}
	r.Memory.rows("gRPC", "30 MiB", "48 KiB each", "24 KiB each", row)
	r.NATSMemory.rows("NATS", "40 MiB", "", "", row)
	r.DBusMemory.rows("D-Bus", "", "", "", row)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, head.String())
	return err
}

func (f *Fanout) rows(row func(what, ours, bare, ratio, target string)) {
	row(fmt.Sprintf("10,000 events/s to %d goroutines, p99", f.SubscriberCount), micros(f.GoroutineP99), micros(f.BareP99), number(f.RatioP99), "ratio 1.0")
	row("  p50", micros(f.GoroutineP50), micros(f.BareP50), "", "")
	row(fmt.Sprintf("10,000 events/s to %d callbacks, p99", f.SubscriberCount), micros(f.CallbackP99), "", "", "50 µs")
	row("  p50", micros(f.CallbackP50), "", "", "")
	row("without a pause, callbacks", fmt.Sprintf("%.1f M/s", f.Deliveries/1e6), "", "", "8 M/s")
	row("allocations an event", number(f.Allocs), "", "", "0")
	row("missed", fmt.Sprint(f.Missed), "", "", "0")
}

func (f *Front) rows(name string, row func(what, ours, bare, ratio, target string)) {
	if f == nil {
		row("Freeze over "+name+", p50", "not measured", "", "", "ratio 1.3")
		return
	}
	row("Freeze over "+name+", p50", micros(f.OursP50), micros(f.BareP50), number(f.RatioP50), "ratio 1.3")
	row("  p99", micros(f.OursP99), micros(f.BareP99), "", "")
	row("  missed", fmt.Sprint(f.Missed), "", "", "0")
}

func (m *Memory) rows(name, idle, own, shared string, row func(what, ours, bare, ratio, target string)) {
	if m == nil {
		return
	}
	row("resident with "+name+", idle", number(m.IdleMiB)+" MiB", "", "", idle)
	row(fmt.Sprintf("  %d subscribers, each with a connection", m.Subscribers), kib(m.OwnConnection), "", "", own)
	row("  on one connection", kib(m.SharedConnection), "", "", shared)
	row("  hints missed", fmt.Sprintf("%d of %d each", m.MissedHints, m.HintsEach), "", "", "0")
}

func micros(v float64) string { return number(v) + " µs" }

func kib(v float64) string { return number(v) + " KiB each" }

func number(v float64) string { return fmt.Sprintf("%.4g", v) }
