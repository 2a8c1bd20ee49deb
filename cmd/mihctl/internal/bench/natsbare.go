package bench

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// bareNATS is a server without anything else, a publisher in its process, and a subscriber
// that is connected as our client is. The message has no header, and is as long as ours is
// with its headers.
type bareNATS struct {
	*arrivals
	server   *server.Server
	pub, sub *nats.Conn
	message  []byte
}

const bareSubject = "bench.freeze"

// newBareNATS listens on an address of port 0; "": only the process connects.
func newBareNATS(listen string, size int) (*bareNATS, error) {
	secret := rand.Text()
	o := &server.Options{
		ServerName: "bench", NoSigs: true, NoLog: true, DontListen: listen == "",
		Users: []*server.User{{Username: natsUser, Password: secret}},
	}
	if listen != "" {
		host, _, err := net.SplitHostPort(listen)
		if err != nil {
			return nil, err
		}
		o.Host, o.Port = host, server.RANDOM_PORT
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	s.Start()
	x := &bareNATS{arrivals: newArrivals(), server: s, message: make([]byte, size)}
	if !s.ReadyForConnections(5 * time.Second) {
		return nil, errors.Join(errors.New("the server does not start"), x.close())
	}
	if err := x.connect(listen, nats.UserInfo(natsUser, secret)); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (x *bareNATS) connect(listen string, who nats.Option) (err error) {
	inside := nats.InProcessServer(x.server)
	if x.pub, err = nats.Connect("", who, inside); err != nil {
		return fmt.Errorf("publisher: %w", err)
	}
	if listen == "" {
		x.sub, err = nats.Connect("", who, inside)
	} else {
		x.sub, err = nats.Connect("nats://"+x.server.Addr().String(), who)
	}
	if err != nil {
		return fmt.Errorf("subscriber: %w", err)
	}
	if _, err = x.sub.Subscribe(bareSubject, func(*nats.Msg) { x.add() }); err != nil {
		return err
	}
	return x.sub.Flush()
}

func (x *bareNATS) send() error { return x.pub.Publish(bareSubject, x.message) }

func (x *bareNATS) between() {}

func (x *bareNATS) close() error {
	for _, c := range []*nats.Conn{x.sub, x.pub} {
		if c != nil {
			c.Close()
		}
	}
	x.server.Shutdown()
	x.server.WaitForShutdown()
	return nil
}
