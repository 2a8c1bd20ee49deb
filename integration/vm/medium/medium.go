package medium

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"

	"mihf.dev/mihf"
	"mihf.dev/mihf/clock"
)

// Medium carries the frames of the kernel's simulated radios through an Air. Its methods may
// be called from any goroutine.
type Medium struct {
	conn   *genetlink.Conn
	family uint16

	mu    sync.Mutex // guards the following
	air   *Air
	stats Stats
}

// Stats counts what the shell saw.
type Stats struct {
	Frames     int // sent by radios
	Deliveries int // taken by a receiver's driver
	Refused    int // offered, but the radio was off or on another channel
	Unreadable int // messages of the driver that made no sense
}

// receiveBuffer takes what radios send while this process does not run, in bytes.
const receiveBuffer = 4 << 20

// Open makes this process the medium of the simulated radios of its network namespace. From
// here on frames wait for Run. The module mac80211_hwsim must be loaded.
func Open(air *Air) (*Medium, error) {
	c, err := genetlink.Dial(&netlink.Config{PID: portID()})
	if err != nil {
		return nil, fmt.Errorf("medium: %w", err)
	}
	m := &Medium{conn: c, air: air}
	if err := m.register(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return m, nil
}

// portID is an address for the socket that no other one has. The driver takes the end of any
// netlink socket with the medium's address, of whatever protocol, for the medium's end, and
// the kernel gives a process's first socket of each protocol the same: that of net.Interfaces
// would do. Those that the kernel gives are process ids, or have the highest bit.
func portID() uint32 { return 1<<30 | rand.Uint32N(1<<30) }

func (m *Medium) register() error {
	family, err := m.conn.GetFamily("MAC80211_HWSIM")
	if err != nil {
		return fmt.Errorf("medium: find the driver (is mac80211_hwsim loaded?): %w", err)
	}
	m.family = family.ID
	if err := m.conn.SetReadBuffer(receiveBuffer); err != nil {
		return fmt.Errorf("medium: the receive buffer: %w", err)
	}
	// A full buffer costs frames, as air does; the driver is not told either.
	if err := m.conn.SetOption(netlink.NoENOBUFS, true); err != nil {
		return fmt.Errorf("medium: %w", err)
	}
	if _, err := m.conn.Execute(message(cmdRegister, nil), m.family, netlink.Request|netlink.Acknowledge); err != nil {
		return fmt.Errorf("medium: register (is another medium running?): %w", err)
	}
	return nil
}

// Close gives the kernel's own medium back.
func (m *Medium) Close() error { return m.conn.Close() }

// Join gives a pair the same signal in both directions, beginning now. It reports false where
// there would be too many radios.
func (m *Medium) Join(a, b Radio, s Signal) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := clock.Boot().Now()
	return m.air.Set(now, a, b, s) && m.air.Set(now, b, a, s)
}

// Set gives one direction a signal, beginning now; false as for Join.
func (m *Medium) Set(from, to Radio, s Signal) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.air.Set(clock.Boot().Now(), from, to, s)
}

// SetLoss sets the loss model.
func (m *Medium) SetLoss(l Loss) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.air.SetLoss(l)
}

// Truth is what came through from one radio to another; times are boot time.
func (m *Medium) Truth(from, to Radio) Truth {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.air.Truth(from, to)
}

// Stats are the counts until now.
func (m *Medium) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

// Run carries frames until ctx ends, and then returns nil.
func (m *Medium) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		_ = m.conn.SetReadDeadline(time.Unix(1, 0)) // fails only if it is closed, which ends Run too
	})
	defer stop()
	// The socket is this goroutine's. While it waits for the driver's word on a delivery,
	// frames arrive; they come next.
	r := relay{m: m}
	for {
		if err := r.next(); err != nil {
			if ctx.Err() != nil || errors.Is(err, os.ErrClosed) {
				return nil
			}
			return fmt.Errorf("medium: %w", err)
		}
	}
}

// A relay is the socket with what was received ahead of its turn. What is in waiting is
// bounded by the frames that radios send within one delivery.
type relay struct {
	m       *Medium
	waiting []genetlink.Message
}

// next handles a message of the driver.
func (r *relay) next() error {
	for len(r.waiting) == 0 {
		if _, err := r.receive(); err != nil {
			return err
		}
	}
	msg := r.waiting[0]
	r.waiting = r.waiting[1:]
	switch msg.Header.Command {
	case cmdFrame:
		f, err := decodeFrame(msg.Data)
		if err == nil {
			return r.frame(f)
		}
		r.m.count(func(s *Stats) { s.Unreadable++ })
	case cmdAddAddress, cmdDelAddress:
		r.m.own(msg)
	}
	return nil
}

func (m *Medium) count(f func(*Stats)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.stats)
}

func (m *Medium) own(msg genetlink.Message) {
	address, radio, err := decodeAddress(msg.Data)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil:
		m.stats.Unreadable++
	case msg.Header.Command == cmdAddAddress:
		m.air.Own(address, radio) // what is too much is sent to all
	default:
		m.air.Disown(address)
	}
}

// frame gives a frame to those who hear it, and its sender the status.
func (r *relay) frame(f *Frame) error {
	now, heard := r.m.transmit(f)
	var taken []Reception
	for _, reception := range heard {
		b, err := encodeReception(f, reception)
		if err != nil {
			return fmt.Errorf("encode a frame: %w", err)
		}
		ok, err := r.tell(cmdFrame, b)
		if err != nil {
			return err
		}
		if ok {
			taken = append(taken, reception)
		}
	}
	b, err := encodeStatus(f, r.m.done(now, f, heard, taken))
	if err != nil {
		return fmt.Errorf("encode a frame's status: %w", err)
	}
	_, err = r.tell(cmdTxInfo, b) // refused: the sender is gone
	return err
}

func (m *Medium) transmit(f *Frame) (mihf.Time, []Reception) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := clock.Boot().Now()
	return now, m.air.Transmit(now, f)
}

func (m *Medium) done(now mihf.Time, f *Frame, heard, taken []Reception) Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Frames++
	m.stats.Deliveries += len(taken)
	m.stats.Refused += len(heard) - len(taken)
	return m.air.Done(now, f, taken)
}

// tell sends the driver a message and waits for its word, which comes before Send returns: it
// only has to be found behind the frames that came first.
func (r *relay) tell(command uint8, b []byte) (taken bool, err error) {
	if _, err := r.m.conn.Send(message(command, b), r.m.family, netlink.Request|netlink.Acknowledge); err != nil {
		return false, err
	}
	for {
		switch word, err := r.receive(); {
		case err != nil:
			return false, err
		case word != wordNone:
			return word == wordTaken, nil
		}
	}
}

// A word is the driver's answer to a message.
type word int

const (
	wordNone word = iota
	wordTaken
	wordRefused
)

// receive takes one read of the socket: frames, which wait for their turn, or a word.
func (r *relay) receive() (word, error) {
	messages, raw, err := r.m.conn.Receive()
	// Only what answers a message has its number.
	if refused, ok := errors.AsType[*netlink.OpError](err); ok && refused.Sequence != 0 {
		return wordRefused, nil
	}
	if err != nil {
		return wordNone, err
	}
	w := wordNone
	for i := range messages {
		if raw[i].Header.Type == netlink.Error { // with code 0: else it were an error
			w = wordTaken
			continue
		}
		r.waiting = append(r.waiting, messages[i])
	}
	return w, nil
}

func message(command uint8, b []byte) genetlink.Message {
	return genetlink.Message{Header: genetlink.Header{Command: command, Version: 1}, Data: b}
}
