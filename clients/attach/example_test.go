package attach_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"mihf.dev/clients/attach"
	"mihf.dev/clients/mihgrpc"
	"mihf.dev/mihf"
	"mihf.dev/mihf/broker"
	"mihf.dev/mihf/engine"
	"mihf.dev/mihf/front/grpcfront"
)

// sender is a transport that says what it is told.
type sender struct{ thawed func() }

func (s *sender) RTT() time.Duration       { return 80 * time.Millisecond }
func (s *sender) Freeze(f mihf.Freeze)     { fmt.Println("stop sending:", f.Reason) }
func (s *sender) Unfreeze(u mihf.Unfreeze) { fmt.Println("go on:", u.Cause); s.thawed() }
func (s *sender) Characteristics(mihf.LCI) {}

func Example() {
	address, stop := startBroker() // outside of tests: "", the system's broker
	defer stop()
	client, err := mihgrpc.Dial(address, mihgrpc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	flow := attach.New(&sender{thawed: cancel}, client, attach.Options{
		Spec: mihf.FlowSpec{Link: "wifi-00000001", LateFreeze: true, MaxFreeze: 10 * time.Second},
	})
	go loseLinkOnce(flow.Ready())
	if err := flow.Run(ctx); err != nil { // joined until ctx ends
		fmt.Println(err)
	}
	// Output:
	// stop sending: link_down
	// go on: path_usable
}

var (
	theBroker *broker.Broker
	links     = map[bool]mihf.LinkFacts{
		false: {Name: "wlan0", AdminUp: true, Oper: mihf.OperDown},
		true: {
			Name: "wlan0", AdminUp: true, Carrier: true, Oper: mihf.OperUp,
			Addresses: []mihf.Address{{Prefix: netip.MustParsePrefix("192.0.2.2/24")}},
			Defaults:  []mihf.Route{{Gateway: netip.MustParseAddr("192.0.2.1")}},
		},
	}
)

func see(up bool) {
	facts := links[up]
	theBroker.Observe(&mihf.Observation{At: theBroker.Now(), Link: "wifi-00000001", Kind: mihf.ObsLink, Facts: &facts})
}

// loseLinkOnce takes the link down and brings it up again.
func loseLinkOnce(joined <-chan struct{}) {
	<-joined
	see(false)
	see(true)
}

// startBroker runs a broker with its gRPC front on a socket of its own.
func startBroker() (address string, stop func()) {
	dir, err := os.MkdirTemp("", "mihf")
	if err != nil {
		panic(err)
	}
	path := filepath.Join(dir, "s")
	ln, err := grpcfront.ListenUnix(path, 0o600, "")
	if err != nil {
		panic(err)
	}
	cfg := broker.Config{Engine: engine.Defaults()}
	cfg.Engine.Boot = 1
	theBroker = broker.New(cfg)
	front, err := grpcfront.New(grpcfront.Options{Broker: theBroker, Listeners: []net.Listener{ln}})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- theBroker.Run(ctx) }()
	go func() { ended <- front.Run(ctx) }()
	see(true)
	return "unix://" + path, func() {
		cancel()
		fmt.Print(errorText(<-ended), errorText(<-ended))
		_ = os.RemoveAll(dir)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
