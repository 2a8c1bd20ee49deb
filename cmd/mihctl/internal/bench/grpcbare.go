package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	mihv1 "mihf.dev/proto/mih/v1"
)

// bareStream is the least that a gRPC stream needs: a service of one method, whose handler
// sends the message that it is given through a channel, and a client that reads it. The
// message is a Freeze that was made before.
type bareStream struct {
	*arrivals
	server  *grpc.Server
	conn    *grpc.ClientConn
	due     chan *mihv1.AttachResponse
	message *mihv1.AttachResponse
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
}

var bareMethod = grpc.StreamDesc{StreamName: "Follow", ServerStreams: true}

func newBare(ctx context.Context, socket string, message *mihv1.AttachResponse) (*bareStream, error) {
	var listen net.ListenConfig
	ln, err := listen.Listen(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	x := &bareStream{arrivals: newArrivals(), message: message, due: make(chan *mihv1.AttachResponse, 64)}
	ctx, x.cancel = context.WithCancel(ctx)
	method := bareMethod
	method.Handler = x.handle
	x.server = grpc.NewServer()
	x.server.RegisterService(&grpc.ServiceDesc{ServiceName: "bench.Bare", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{method}}, nil)
	x.tasks.Go(func() { _ = x.server.Serve(ln) }) // what it says shows at the client
	if err := x.follow(ctx, socket); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

// handle is the service's one method.
func (x *bareStream) handle(_ any, s grpc.ServerStream) error {
	if err := s.RecvMsg(&mihv1.AttachRequest{}); err != nil {
		return err
	}
	for {
		select {
		case message := <-x.due:
			if err := s.SendMsg(message); err != nil {
				return err
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

// follow connects a client that notes what arrives.
func (x *bareStream) follow(ctx context.Context, socket string) (err error) {
	x.conn, err = grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	s, err := x.conn.NewStream(ctx, &bareMethod, "/bench.Bare/Follow")
	if err != nil {
		return fmt.Errorf("open a stream: %w", err)
	}
	if err := errors.Join(s.SendMsg(&mihv1.AttachRequest{}), s.CloseSend()); err != nil {
		return fmt.Errorf("ask for messages: %w", err)
	}
	x.tasks.Go(func() {
		for s.RecvMsg(&mihv1.AttachResponse{}) == nil { // what is missing is counted
			x.add()
		}
	})
	return nil
}

func (x *bareStream) send() error {
	x.due <- x.message
	return nil
}

func (x *bareStream) between() {}

func (x *bareStream) close() error {
	x.cancel()
	var err error
	if x.conn != nil {
		err = x.conn.Close()
	}
	x.server.Stop()
	x.tasks.Wait()
	return err
}
