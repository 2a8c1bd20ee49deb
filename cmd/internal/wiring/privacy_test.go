package wiring

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mihf.dev/clients/mihgrpc"
	"mihf.dev/mihf"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/front/pseudonym"
	"mihf.dev/sensors"
)

// A key is made where a front reaches other hosts, only there, and stays.
func TestPoAKey(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*config.Config)
		hides  bool
	}{
		"nothing but the socket":  {func(*config.Config) {}, false},
		"gRPC over TCP":           {func(c *config.Config) { c.GRPC.Listen = "127.0.0.1:4552" }, true},
		"plain":                   {func(c *config.Config) { c.GRPC.Listen, c.Privacy.PoAIDs = ":4552", config.PoAsPlain }, false},
		"external NATS":           {func(c *config.Config) { c.NATS.Server = config.NATSExternal }, true},
		"embedded, in process":    {func(c *config.Config) { c.NATS.Server = config.NATSEmbedded }, false},
		"embedded, on loopback":   {func(c *config.Config) { c.NATS.Server, c.NATS.Listen = config.NATSEmbedded, "[::1]:4222" }, false},
		"embedded, everywhere":    {func(c *config.Config) { c.NATS.Server, c.NATS.Listen = config.NATSEmbedded, ":4222" }, true},
		"embedded, at a leaf":     {func(c *config.Config) { c.NATS.Server, c.NATS.Leaf = config.NATSEmbedded, []string{"tls://hub:7422"} }, true},
		"no NATS, but a leaf key": {func(c *config.Config) { c.NATS.Leaf = []string{"tls://hub:7422"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, state := config.Defaults(), filepath.Join(t.TempDir(), "state")
			x.change(&c)
			key, err := PoAKey(&c, state)
			if err != nil || (key != nil) != x.hides {
				t.Fatalf("%v, %v", key, err)
			}
			info, err := os.Stat(filepath.Join(state, keyName))
			if (err == nil) != x.hides || x.hides && (info.Mode() != fs.FileMode(0o600) || *key == pseudonym.Key{}) {
				t.Fatalf("the file: %v, %v", info, err)
			}
			if left, _ := filepath.Glob(filepath.Join(state, ".*")); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
			if again, err := PoAKey(&c, state); err != nil || x.hides && *again != *key {
				t.Errorf("after a restart: %v, %v", again, err)
			}
		})
	}
}

func TestPoAKeyFile(t *testing.T) {
	dir := t.TempDir()
	c := config.Defaults()
	c.DBus.Bus, c.NATS.Server = config.NoBus, config.NATSExternal
	c.Privacy.PoAKeyFile = filepath.Join(dir, "key")
	write := func(octets int, mode fs.FileMode) {
		t.Helper()
		if err := os.WriteFile(c.Privacy.PoAKeyFile, bytes.Repeat([]byte{9}, octets), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(c.Privacy.PoAKeyFile, mode); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what string) {
		t.Helper()
		if key, err := PoAKey(&c, dir); err == nil || key != nil || Check(&c) == nil {
			t.Errorf("%s: %v, %v", what, key, err)
		}
	}
	refused("no file")
	write(33, 0o600)
	refused("33 octets")
	write(32, 0o644)
	refused("a file that everybody may read")
	write(32, 0o640)
	if key, err := PoAKey(&c, ""); err != nil || key[31] != 9 || Check(&c) != nil {
		t.Errorf("%v, %v", key, err)
	}
	c.Privacy.PoAKeyFile = ""
	if key, err := PoAKey(&c, ""); err == nil {
		t.Errorf("no directory for a key: %v", key)
	}
	if err := os.WriteFile(filepath.Join(dir, keyName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := PoAKey(&c, dir); err == nil {
		t.Errorf("an empty key: %v", key)
	}
}

// Whom another host can be gets pseudonyms from an assembled daemon, and the socket ids.
func TestAssembledHidesPoAs(t *testing.T) {
	const ap, wlan = mihf.PoA("02:00:00:00:01:02"), mihf.LinkID("wifi-00000001")
	dir := t.TempDir()
	certificate(t, dir)
	c := config.Defaults()
	c.DBus.Bus, c.Sensors = config.NoBus, config.Sensors{}
	c.GRPC = config.GRPC{
		Socket: dir + "/s", Mode: 0o600, Listen: freeAddress(t),
		Cert: dir + "/cert.pem", Key: dir + "/key.pem", ClientCA: dir + "/cert.pem",
	}
	sensor := fakeSensor{make(chan mihf.Observation)}
	a, err := Assemble(&c, Options{State: dir, Sensors: []sensors.Sensor{sensor}})
	if err != nil {
		t.Fatal(err)
	}
	key, err := PoAKey(&c, dir)
	if err != nil {
		t.Fatal(err)
	}
	go func() { // the tasks are ready when the sensor has said how it is
		for _, o := range []mihf.Observation{
			condition(mihf.ConditionOK),
			{Kind: mihf.ObsLink, Link: wlan, Facts: &mihf.LinkFacts{Index: 3, MTUBytes: 1500, AdminUp: true, Carrier: true, Oper: mihf.OperUp}},
			{Kind: mihf.ObsAssociation, Link: wlan, Association: &mihf.Association{State: mihf.AssociationAuthorised, PoA: ap}},
		} {
			o.At, o.Sensor = a.Broker.Now(), "fake"
			select {
			case sensor.emit <- o:
			case <-t.Context().Done():
			}
		}
	}()
	defer start(t, a.Tasks...)()
	side, err := ClientTLS(c.GRPC.Cert, c.GRPC.Key, c.GRPC.ClientCA)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for address, want := range map[string]mihf.PoA{"unix://" + c.GRPC.Socket: ap, c.GRPC.Listen: key.PoA(ap)} {
		o := mihgrpc.Options{}
		if want != ap {
			o.TLS = side
		}
		client, err := mihgrpc.Dial(address, o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		var got mihf.PoA
		for ; got == "" && t.Context().Err() == nil; time.Sleep(time.Millisecond) {
			s, err := client.Snapshot(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Links) > 0 {
				got = s.Links[0].PoA
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
