package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"mihf.dev/mihf"
)

func scrape(t *testing.T, status statusFunc, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	newMetrics(status).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestMetrics(t *testing.T) {
	code, text := scrape(t, func(_ context.Context, who mihf.Caller) (mihf.Status, error) {
		return mihf.Status{
			Version: "v1", Uptime: 90 * time.Second, Links: 3, Flows: 2, Subscribers: 1,
			Sensors:  []mihf.SensorCondition{{Sensor: "rtnl", Condition: mihf.ConditionDenied, Text: "SSID home"}},
			Counters: []mihf.CounterValue{{Name: "mihf_broker_events_total", Value: 12}, {Name: "mihf_rtnl_messages_total"}},
		}, nil
	}, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("status %d:\n%s", code, text)
	}
	for _, want := range []string{
		`mihf_build_info{version="v1"} 1`, "mihf_broker_uptime_seconds 90", "mihf_broker_links 3", "mihf_broker_flows 2",
		"mihf_broker_subscribers 1", "mihf_broker_events_total 12", "mihf_rtnl_messages_total 0",
		`mihf_sensor_condition{condition="denied",sensor="rtnl"} 1`, `mihf_sensor_condition{condition="ok",sensor="rtnl"} 0`,
		"# TYPE mihf_broker_events_total counter", "go_goroutines ", "process_resident_memory_bytes ",
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "SSID") {
		t.Error("text of a condition is in the metrics")
	}
	form := regexp.MustCompile(`^(#.*|mihf_(build|broker|sensor|rtnl)_[a-z_]+(\{.*\})? \S+|(go|process)_.*)$`)
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); !form.MatchString(line) {
			t.Errorf("line %q", line)
		}
	}
	if code, _ := scrape(t, nil, "/other"); code != http.StatusNotFound {
		t.Errorf("status %d for another path", code)
	}
}

func TestMetricsOfABrokerThatDoesNotAnswer(t *testing.T) {
	code, text := scrape(t, func(context.Context, mihf.Caller) (mihf.Status, error) { return mihf.Status{}, errors.New("stuck") }, "/metrics")
	if code != http.StatusInternalServerError || !strings.Contains(text, "stuck") {
		t.Errorf("status %d:\n%s", code, text)
	}
}

func TestMetricsOfADaemon(t *testing.T) {
	b := newBed(t)
	b.configure("[metrics]\nlisten = \"127.0.0.1:0\"\n")
	p := b.start()
	b.told("READY=1")
	m := regexp.MustCompile(`metrics served" address=(\S+)`).FindStringSubmatch(p.log.all())
	if m == nil {
		t.Fatal("the address is not in the log")
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+m[1]+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(text), "mihf_rtnl_messages_total") || !strings.Contains(string(text), "mihf_grpc_deliveries_total") {
		t.Errorf("error %v:\n%s", err, text)
	}
	docs, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^mihf_[a-z_]+`).FindAllString(string(text), -1) {
		if !strings.Contains(string(docs), "`"+m) {
			t.Errorf("docs/operations.md doesn't explain %s", m)
		}
	}
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
}
