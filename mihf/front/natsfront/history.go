package natsfront

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mihf.dev/mihf"
	"mihf.dev/proto/natsproto"
)

// History keeps events in a JetStream stream, for who asks later.
type History struct {
	Directory string        // of the embedded server's store
	MaxBytes  int64         // of the stream; the oldest goes
	MaxAge    time.Duration // of an event
}

// Bounds of the stream.
const (
	historyMemory  = 16 << 20
	historyTimeout = 5 * time.Second
	maxHistoryItem = maxPayload
)

// keepHistory makes the stream, or sets an older one to what is wanted.
func keepHistory(ctx context.Context, c *nats.Conn, node mihf.NodeID, h *History) error {
	js, err := jetstream.New(c)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: natsproto.Stream(node), Description: "what happened to the links of " + string(node),
		Subjects: []string{natsproto.Events(node)},
		Storage:  jetstream.FileStorage, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
		MaxBytes: h.MaxBytes, MaxAge: h.MaxAge, MaxMsgSize: maxHistoryItem,
		AllowDirect: true, DenyDelete: true, DenyPurge: true, NoAck: true,
	})
	if err != nil {
		return fmt.Errorf("history: stream %s: %w", natsproto.Stream(node), err)
	}
	return nil
}
