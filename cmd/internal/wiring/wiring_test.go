package wiring

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mihf.dev/clients/mihgrpc"
	"mihf.dev/mihf"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/daemon"
	"mihf.dev/mihf/front/grpcfront"
	"mihf.dev/sensors"
)

func untilClosed(quit <-chan struct{}) daemon.Task {
	return daemon.NewTask("test", func(_ context.Context, ready func()) error {
		ready()
		<-quit
		return nil
	})
}

func serve(t *testing.T, quit <-chan struct{}, tasks []daemon.Task) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-quit
		cancel()
	}()
	return daemon.Serve(ctx, nil, nil, tasks...)
}

// fakeSensor emits what it is given.
type fakeSensor struct{ emit chan mihf.Observation }

func (fakeSensor) Name() string { return "fake" }

func (s fakeSensor) Run(ctx context.Context, emit sensors.Emit) error {
	for {
		select {
		case o := <-s.emit:
			emit(&o)
		case <-ctx.Done():
			return nil
		}
	}
}

func (fakeSensor) Counters() []mihf.CounterValue {
	return []mihf.CounterValue{{Name: "mihf_fake_things_total", Value: 7}}
}

func condition(c mihf.Condition) mihf.Observation {
	return mihf.Observation{Kind: mihf.ObsCondition, Condition: &mihf.SensorCondition{Sensor: "fake", Condition: c}}
}

func TestSensorTask(t *testing.T) { synctest.Test(t, testSensorTask) }
func testSensorTask(t *testing.T) {
	s := fakeSensor{make(chan mihf.Observation)}
	observed := 0
	task := SensorTask(s, func(*mihf.Observation) { observed++ })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- task.Run(ctx) }()
	for _, o := range []mihf.Observation{condition(mihf.ConditionStarting), {Kind: mihf.ObsLink}} {
		s.emit <- o
		synctest.Wait()
		select {
		case <-task.Ready():
			t.Error("ready before the condition is known")
		default:
		}
	}
	s.emit <- condition(mihf.ConditionUnavailable)
	<-task.Ready()
	cancel()
	if err := <-ended; err != nil || observed != 3 {
		t.Errorf("%d observations, error %v", observed, err)
	}
}

func TestNewSensors(t *testing.T) {
	c := config.Defaults()
	c.DBus.Bus = config.NoBus
	list, watch := NewSensors(&c, Options{})
	if len(list) != 5 || watch.Peers == nil || watch.Flows == nil {
		t.Errorf("%d sensors", len(list))
	}
	watch.Peers(nil) // must not block
	watch.Flows(nil)
	s := &c.Sensors
	s.Rtnl.Enabled, s.NL80211.Enabled, s.Modem.Enabled, s.SockDiag.Enabled, s.Suspend.Enabled = false, false, false, false, false
	if list, watch := NewSensors(&c, Options{}); len(list) != 0 || watch.Peers != nil || watch.Flows != nil {
		t.Errorf("%d sensors although all are off", len(list))
	}
}

func TestProbe(t *testing.T) { synctest.Test(t, testProbe) }
func testProbe(t *testing.T) {
	c := config.Defaults()
	c.DBus.Bus = config.NoBus
	b, err := NewBroker(&c, Options{}, Watch{})
	if err != nil {
		t.Fatal(err)
	}
	probe := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return Probe(b)(ctx)
	}
	if err := probe(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v from a loop that does not run", err)
	}
	stop := start(t, BrokerTask(b))
	if err := probe(); err != nil {
		t.Error(err)
	}
	stop()
	if err := probe(); !errors.Is(err, mihf.ErrClosed) {
		t.Errorf("error %v from a loop that ended", err)
	}
}

// TestAssembly goes from a sensor to a client over the socket.
func TestAssembly(t *testing.T) {
	c := config.Defaults()
	c.DBus.Bus = config.NoBus
	c.Node.Name = "n"
	s := fakeSensor{make(chan mihf.Observation)}
	o := Options{Socket: filepath.Join(t.TempDir(), "s"), Version: "v1", Sensors: []sensors.Sensor{s}}
	a, err := Assemble(&c, o)
	if err != nil {
		t.Fatal(err)
	}
	if a.Socket != o.Socket {
		t.Errorf("socket %s", a.Socket)
	}
	go func() { s.emit <- condition(mihf.ConditionOK) }()
	stop := start(t, a.Tasks...)
	client, err := mihgrpc.Dial("unix://"+a.Socket, mihgrpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	st, err := client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if st.Version != "v1" || st.Node != "n" || st.Predictor != "ensemble" || st.Boot != a.Broker.Boot() || len(st.Sensors) != 1 {
		t.Errorf("status %+v", st)
	}
	for _, name := range []string{"mihf_broker_events_total", "mihf_fake_things_total", "mihf_grpc_deliveries_total"} {
		if !slices.ContainsFunc(st.Counters, func(c mihf.CounterValue) bool { return c.Name == name }) {
			t.Errorf("no counter %s", name)
		}
	}
	if _, err := Assemble(&c, o); !errors.Is(err, grpcfront.ErrRunning) {
		t.Errorf("error %v while another one runs", err)
	}
	stop()
	if _, err := os.Stat(a.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

// What is chosen for the user is in the log: the seed of the random choices, and that the
// socket's group does not exist.
func TestChoicesAreLogged(t *testing.T) {
	var out bytes.Buffer
	o := Options{
		Socket: filepath.Join(t.TempDir(), "s"),
		Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	c := config.Defaults()
	c.DBus.Bus = config.NoBus
	c.GRPC.Group = "no such group"
	r := rtnlOptions(&c.Sensors.Rtnl, o)
	b, err := NewBroker(&c, Options{}, Watch{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewGRPC(&c.GRPC, o.Socket, b, nil, nil, o.Logger)
	if err != nil {
		t.Fatal(err)
	}
	run, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(run); err != nil { // closes the listener
		t.Error(err)
	}
	for _, want := range []string{fmt.Sprintf("level=DEBUG msg=\"random choices begin\" sensor=rtnl seed=%d\n", r.Seed), `group="no such group"`} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("the log has not %q once:\n%s", want, out.String())
		}
	}
}

func TestAssembleFails(t *testing.T) {
	dir := t.TempDir()
	for name, change := range map[string]func(*config.Config){
		"predictor": func(c *config.Config) { c.Predictor.Method = "magic" },
		"no such file": func(c *config.Config) {
			c.GRPC.Listen, c.GRPC.Cert, c.GRPC.Key, c.GRPC.ClientCA = "127.0.0.1:0", dir+"/c", dir+"/k", dir+"/ca"
		},
		"group":            func(c *config.Config) { c.GRPC.Group = "no-such-group-x" },
		"socket directory": func(c *config.Config) { c.GRPC.Socket = dir + "/a/b/c/s" },
	} {
		c := config.Defaults()
		c.DBus.Bus = config.NoBus
		c.GRPC.Socket = dir + "/s"
		change(&c)
		if _, err := Assemble(&c, Options{}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := os.Stat(dir + "/s"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the socket is left", name)
		}
	}
}

// TestTLS: only a client with a certificate of the authority gets in over TCP.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir)
	c := config.Defaults()
	c.DBus.Bus = config.NoBus
	c.Sensors = config.Sensors{}
	c.GRPC = config.GRPC{
		Socket: dir + "/s", Mode: 0o600, Listen: freeAddress(t),
		Cert: dir + "/cert.pem", Key: dir + "/key.pem", ClientCA: dir + "/cert.pem",
	}
	a, err := Assemble(&c, Options{State: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer start(t, a.Tasks...)()
	ask := func(side *tls.Config) error {
		client, err := mihgrpc.Dial(c.GRPC.Listen, mihgrpc.Options{TLS: side})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		_, err = client.Snapshot(t.Context())
		return err
	}
	side, err := ClientTLS(c.GRPC.Cert, c.GRPC.Key, c.GRPC.ClientCA)
	if err != nil {
		t.Fatal(err)
	}
	if err := ask(side); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, keyName)); err != nil {
		t.Errorf("TCP is served without a key that hides points of attachment: %v", err)
	}
	if side.Certificates = nil; ask(side) == nil {
		t.Error("a client without a certificate got in")
	}
	if err := os.WriteFile(dir+"/cert.pem", []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := TLS(&c.GRPC); err == nil || !strings.Contains(err.Error(), "grpc.cert") {
		t.Errorf("error %v", err)
	}
	if _, err := ClientTLS(dir+"/cert.pem", dir+"/key.pem", dir+"/cert.pem"); err == nil || !strings.Contains(err.Error(), "--cert "+dir) {
		t.Errorf("error %v", err)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// certificate writes a certificate that is its own authority, and its key.
func certificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template(), template(), &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	for name, data := range map[string][]byte{"cert.pem": cert, "key.pem": private} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func template() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}
