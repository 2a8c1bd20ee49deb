package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"mihf.dev/clients"
	"mihf.dev/clients/mihnats"
	"mihf.dev/mihf"
	"mihf.dev/mihf/front/natsfront"
	"mihf.dev/proto/natsproto"
)

const (
	natsUser = "bench"
	loopback = "127.0.0.1:0"
)

// overNATS is a client on a loopback socket of the server that is embedded in the daemon,
// and a bare publisher and subscriber that are connected the same way.
func overNATS(_ context.Context, dir string) (*scene, error) {
	return natsScene(loopback, hostNATS.in(dir))
}

// overNATSInProcess is the same without a socket.
func overNATSInProcess(context.Context, string) (*scene, error) {
	return natsScene("", func(ctx context.Context, b *started, tasks *sync.WaitGroup) (clients.Client, error) {
		s, secret, err := serveNATS(ctx, b, "", tasks)
		if err != nil {
			return nil, err
		}
		o := natsOptions(secret)
		o.InProcess = s
		return mihnats.Dial("", o)
	})
}

func natsScene(listen string, join func(context.Context, *started, *sync.WaitGroup) (clients.Client, error)) (*scene, error) {
	size, err := natsSize()
	if err != nil {
		return nil, err
	}
	bare, err := newBareNATS(listen, size)
	if err != nil {
		return nil, fmt.Errorf("bare publisher: %w", err)
	}
	return &scene{bytes: size, bare: bare, join: join}, nil
}

// natsSize returns the octets of a Freeze with its headers.
func natsSize() (int, error) {
	payload, err := proto.Marshal(lateFreeze())
	if err != nil {
		return 0, err
	}
	e := natsproto.Envelope{Type: natsproto.TypeHint, Previous: 9_998, At: 1e15, Boot: 1, Sequence: 10_000}
	size := len("NATS/1.0\r\n\r\n") + len(payload)
	for key, values := range e.Header() {
		for _, v := range values {
			size += len(key) + len(": ") + len(v) + len("\r\n")
		}
	}
	return size, nil
}

// serveNATS serves a broker by an embedded server until ctx ends, and returns the secret of
// its one user.
func serveNATS(ctx context.Context, b *started, listen string, tasks *sync.WaitGroup) (*natsfront.Server, string, error) {
	secret := rand.Text()
	s, err := natsfront.New(natsfront.Options{
		Broker: b, Reader: inproc, Embedded: &natsfront.Embedded{Listen: listen, Users: []natsfront.User{{Name: natsUser, Secret: secret}}},
		Grant: func(mihf.Caller) natsfront.Grant { return natsfront.Grant{Events: true, AllHints: true} },
	})
	if err != nil {
		return nil, "", err
	}
	failed := make(chan error, 1)
	tasks.Go(func() { failed <- s.Run(ctx) })
	select {
	case <-s.Ready():
		return s, secret, nil
	case err := <-failed:
		return nil, "", fmt.Errorf("the front ended before it was ready: %w", err)
	}
}

// hostNATS is the front with its embedded server on a loopback socket. Where says the
// secret, too: it goes through a pipe.
var hostNATS = host{
	serve: func(ctx context.Context, b *started, _ string, tasks *sync.WaitGroup) (string, error) {
		s, secret, err := serveNATS(ctx, b, loopback, tasks)
		if err != nil {
			return "", err
		}
		return secret + "@" + s.Addr().String(), nil
	},
	dial: func(where string) (clients.Client, error) {
		secret, address, _ := strings.Cut(where, "@")
		return mihnats.Dial("nats://"+address, natsOptions(secret))
	},
	shared: 300, // the embedded server gives a connection 1,024 subjects; a subscriber takes three
}

func natsOptions(secret string) mihnats.Options {
	return mihnats.Options{Node: "bench", User: natsUser, Password: secret}
}
