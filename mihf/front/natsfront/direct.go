package natsfront

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// direct is a connection to the embedded server on which sessions are told their hints: a
// message is in the server's hands when publish returns. The library would leave it to another
// goroutine to write it, and a Freeze would wait for that one. It publishes and does nothing
// else.
type direct struct {
	conn   net.Conn
	lost   func() // called once, when the connection has ended and was not closed
	closed atomic.Bool
	done   chan struct{} // closed when nothing reads any more

	mu    sync.Mutex // guards the following, and writing
	buf   []byte
	pongs []chan<- struct{}
}

// dialDirect connects to a server in the process.
func dialDirect(inside nats.InProcessConnProvider, key nkeys.KeyPair, name string, lost func()) (*direct, error) {
	conn, err := inside.InProcessConn()
	if err != nil {
		return nil, err
	}
	d := &direct{conn: conn, lost: lost, done: make(chan struct{})}
	in := bufio.NewReader(conn)
	err = conn.SetDeadline(time.Now().Add(connectTimeout))
	if err == nil {
		err = d.greet(in, key, name)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("NATS: %w", err), conn.Close())
	}
	go d.read(in)
	return d, nil
}

// greet proves who we are, and waits for the server to accept it.
func (d *direct) greet(in *bufio.Reader, key nkeys.KeyPair, name string) error {
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	text, ok := strings.CutPrefix(line, "INFO ")
	var info struct {
		Nonce string `json:"nonce"`
	}
	if !ok || json.Unmarshal([]byte(text), &info) != nil {
		return fmt.Errorf("the server says %.40q", line)
	}
	public, err := key.PublicKey()
	if err != nil {
		return err
	}
	signature, err := key.Sign([]byte(info.Nonce))
	if err != nil {
		return err
	}
	connect, err := json.Marshal(map[string]any{
		"nkey": public, "sig": base64.RawURLEncoding.EncodeToString(signature), "name": name,
		"headers": true, "verbose": false, "pedantic": false, "echo": false, "protocol": 1,
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(d.conn, "CONNECT %s\r\nPING\r\n", connect); err != nil {
		return err
	}
	for {
		switch line, err := in.ReadString('\n'); {
		case err != nil:
			return err
		case strings.HasPrefix(line, "-ERR"):
			return errors.New(strings.TrimSpace(line))
		case strings.HasPrefix(line, "PONG"):
			return nil
		}
	}
}

// read answers the server's questions until the connection ends.
func (d *direct) read(in *bufio.Reader) {
	defer close(d.done)
	for {
		line, err := in.ReadString('\n')
		if err == nil && strings.HasPrefix(line, "PING") {
			err = d.say("PONG\r\n", nil)
		}
		if err != nil || strings.HasPrefix(line, "-ERR") {
			break
		}
		if strings.HasPrefix(line, "PONG") {
			d.ponged()
		}
	}
	_ = d.conn.Close() // it has ended, or is of no use
	if !d.closed.Load() {
		d.lost()
	}
}

func (d *direct) ponged() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pongs) > 0 {
		close(d.pongs[0])
		d.pongs = d.pongs[1:]
	}
}

// say writes a line; pong, where it is given, is closed when what was written is done.
func (d *direct) say(line string, pong chan<- struct{}) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if pong != nil {
		d.pongs = append(d.pongs, pong)
	}
	_, err := io.WriteString(d.conn, line)
	return err
}

// publish hands a message to the server.
func (d *direct) publish(m *nats.Msg) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := append(d.buf[:0], "NATS/1.0\r\n"...)
	for key, values := range m.Header {
		for _, v := range values {
			b = append(append(append(append(b, key...), ": "...), v...), "\r\n"...)
		}
	}
	b = append(b, "\r\n"...)
	head := len(b)
	b = append(append(b, m.Data...), "\r\n"...)
	body := len(b)
	b = append(append(append(b, "HPUB "...), m.Subject...), ' ')
	b = append(strconv.AppendInt(b, int64(head), 10), ' ')
	b = append(strconv.AppendInt(b, int64(head+len(m.Data)), 10), "\r\n"...)
	b = append(b, b[:body]...) // behind the line
	d.buf = b
	_, err := d.conn.Write(b[body:])
	return err
}

// flush waits until the server has passed on what was published.
func (d *direct) flush(limit time.Duration) error {
	pong := make(chan struct{})
	timer := time.NewTimer(limit)
	defer timer.Stop()
	if err := d.say("PING\r\n", pong); err != nil {
		return err
	}
	select {
	case <-pong:
		return nil
	case <-d.done:
		return net.ErrClosed
	case <-timer.C:
		return nats.ErrTimeout
	}
}

func (d *direct) close() {
	d.closed.Store(true)
	_ = d.conn.Close() // what it says changes nothing
	<-d.done
}
