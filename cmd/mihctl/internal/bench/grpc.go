package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"

	"google.golang.org/protobuf/proto"

	"mihf.dev/clients"
	"mihf.dev/clients/mihgrpc"
	"mihf.dev/mihf/front/grpcfront"
	mihv1 "mihf.dev/proto/mih/v1"
)

// overGRPC is a client on a unix socket, and a bare stream of the same message.
func overGRPC(ctx context.Context, dir string) (*scene, error) {
	message := &mihv1.AttachResponse{Previous: 9_998, Response: &mihv1.AttachResponse_Hint{Hint: lateFreeze()}}
	bare, err := newBare(ctx, filepath.Join(dir, "bare.sock"), message)
	if err != nil {
		return nil, fmt.Errorf("bare stream: %w", err)
	}
	return &scene{bytes: proto.Size(message), bare: bare, join: hostGRPC.in(dir)}, nil
}

// hostGRPC is the front on a unix socket.
var hostGRPC = host{
	serve: func(ctx context.Context, b *started, dir string, tasks *sync.WaitGroup) (string, error) {
		socket := filepath.Join(dir, "mihfd.sock")
		return "unix://" + socket, serve(ctx, b, socket, tasks)
	},
	dial: func(where string) (clients.Client, error) { return mihgrpc.Dial(where, mihgrpc.Options{}) },
}

// serve serves a broker on a unix socket, until ctx ends.
func serve(ctx context.Context, b *started, socket string, tasks *sync.WaitGroup) error {
	ln, err := grpcfront.ListenUnix(socket, 0o600, "")
	if err != nil {
		return err
	}
	front, err := grpcfront.New(grpcfront.Options{Broker: b, Listeners: []net.Listener{ln}})
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	tasks.Go(func() { _ = front.Run(ctx) }) // what it says shows at the client
	return nil
}
