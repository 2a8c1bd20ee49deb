package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"mihf.dev/cmd/internal/wiring"
	"mihf.dev/mihf"
	"mihf.dev/mihf/daemon"
	"mihf.dev/mihf/front/patient"
)

// statusFunc asks the broker for its counts.
type statusFunc func(context.Context, mihf.Caller) (mihf.Status, error)

// collector turns a Status into metrics when it is scraped. Labels are the names of
// sensors and conditions only: nothing that is seen of networks or flows.
type collector struct{ status statusFunc }

// Describe sends nothing: which counters there are depends on the parts that run.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect asks the broker.
func (c collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s, err := c.status(ctx, wiring.Self())
	if err != nil {
		out <- prometheus.NewInvalidMetric(prometheus.NewDesc("mihf_broker_up", "Whether the broker answers.", nil, nil), err)
		return
	}
	send := func(kind prometheus.ValueType, value float64, name, help string, labels ...string) {
		names, values := labels[:len(labels)/2], labels[len(labels)/2:]
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, value, values...)
	}
	send(prometheus.GaugeValue, 1, "mihf_build_info", "The version that runs.", "version", s.Version)
	send(prometheus.GaugeValue, s.Uptime.Seconds(), "mihf_broker_uptime_seconds", "Time since the broker began.")
	send(prometheus.GaugeValue, float64(s.Links), "mihf_broker_links", "Links that are known.")
	send(prometheus.GaugeValue, float64(s.Flows), "mihf_broker_flows", "Flows that are registered.")
	send(prometheus.GaugeValue, float64(s.Subscribers), "mihf_broker_subscribers", "Subscriptions and transports.")
	for _, k := range s.Counters {
		send(prometheus.CounterValue, float64(k.Value), k.Name, "A count of "+k.Name+" (docs/operations.md).")
	}
	for _, sensor := range s.Sensors {
		for k := mihf.ConditionStarting; k <= mihf.ConditionStopped; k++ {
			value := 0.0
			if sensor.Condition == k {
				value = 1
			}
			send(prometheus.GaugeValue, value, "mihf_sensor_condition", "1 for the condition that a sensor is in.",
				"sensor", "condition", sensor.Sensor, k.String())
		}
	}
}

// newMetrics returns the handler of /metrics.
func newMetrics(status statusFunc) http.Handler {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(collector{status}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	return mux
}

// metricsTask returns the task that serves metrics on an address. Failures counts the times
// that accepting a connection failed.
func metricsTask(address string, status statusFunc, failures *atomic.Uint64, log *slog.Logger) daemon.Task {
	return daemon.NewTask("metrics", func(ctx context.Context, ready func()) error {
		l, err := wiring.ListenTCP(ctx, address)
		if err != nil {
			return fmt.Errorf("metrics.listen: %w", err)
		}
		log.Info("metrics served", "address", l.Addr().String())
		s := &http.Server{
			Handler: newMetrics(status), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second,
			WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		}
		stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // Serve returns then
		defer stop()
		ready()
		if err := s.Serve(patient.New(l, log, failures)); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve metrics: %w", err)
		}
		return nil
	})
}
