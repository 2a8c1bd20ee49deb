package mihnats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"mihf.dev/mihf"
	"mihf.dev/proto/natsproto"
)

// Limits of looking for nodes.
const (
	quiet    = 150 * time.Millisecond // after the newest answer
	maxNodes = 4096
)

// ErrWhichNode says that more than one node is there and none was named.
var ErrWhichNode = fmt.Errorf("%w: name the node that is meant", mihf.ErrInvalid)

// Nodes asks which nodes are there, and waits until none has answered for a moment.
func (c *Client) Nodes(ctx context.Context) ([]mihf.NodeID, error) {
	own, cancel := c.life.During(ctx)
	defer cancel()
	own, stop := c.limited(own)
	defer stop()
	if err := c.connected(own); err != nil {
		return nil, err
	}
	sub, err := c.conn().SubscribeSync(c.conn().NewInbox())
	if err != nil {
		return nil, c.errorOf(own, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // ends with its connection otherwise
	if err := c.conn().PublishRequest(natsproto.Nodes, sub.Subject, nil); err != nil {
		return nil, c.errorOf(own, err)
	}
	var nodes []mihf.NodeID
	wait := own
	for len(nodes) < maxNodes {
		m, err := sub.NextMsgWithContext(wait)
		switch {
		case err != nil && own.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders)):
			slices.Sort(nodes)
			return slices.Compact(nodes), nil
		case err != nil:
			return nil, c.errorOf(own, err)
		}
		nodes = append(nodes, mihf.NodeID(m.Data))
		var stop context.CancelFunc
		wait, stop = context.WithTimeout(own, quiet)
		defer stop()
	}
	return nodes, nil
}

// nodeFor returns the node that is asked.
func (c *Client) nodeFor(ctx context.Context) (mihf.NodeID, error) {
	c.mu.Lock()
	node := c.node
	c.mu.Unlock()
	if node != "" {
		return node, nil
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return "", err
	}
	switch len(nodes) {
	case 0:
		return "", fmt.Errorf("%w: no daemon is there on this NATS server", mihf.ErrClosed)
	case 1:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.node = nodes[0]
		return nodes[0], nil
	}
	names := make([]string, 0, len(nodes))
	for _, n := range nodes[:min(len(nodes), 20)] {
		names = append(names, string(n))
	}
	return "", fmt.Errorf("%w: %d are there: %s", ErrWhichNode, len(nodes), strings.Join(names, ", "))
}
