package atmodem

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
)

// Config is what a modem is.
type Config struct {
	IMEI         string // "": 490154203237518
	Manufacturer string // "": "Testwerk"
	Model        string // "": "LTE-1"
	NoSIM        bool
	// Refuse are beginnings of commands, in capitals and without AT, that are answered with
	// ERROR.
	Refuse []string
	// Data is given a port that has been dialled, until the session ends: then Read returns
	// io.EOF. nil: what comes in is thrown away.
	Data func(port io.ReadWriter)
}

// maxCommands bounds what [Modem.Commands] returns.
const maxCommands = 4096

// Modem is a modem. The zero Modem is none; see [New].
type Modem struct {
	mu       sync.Mutex // guards all following fields
	state    *state
	ports    []*port
	commands []string
	data     func(io.ReadWriter)
}

// New returns a modem that is registered with an LTE network and has a SIM.
func New(cfg Config) *Modem {
	for _, d := range []struct {
		field *string
		value string
	}{{&cfg.IMEI, "490154203237518"}, {&cfg.Manufacturer, "Testwerk"}, {&cfg.Model, "LTE-1"}} {
		if *d.field == "" {
			*d.field = d.value
		}
	}
	if cfg.Data == nil {
		cfg.Data = func(p io.ReadWriter) { _, _ = io.Copy(io.Discard, p) }
	}
	return &Modem{state: newState(cfg), data: cfg.Data}
}

// Serve answers on one port, of which there may be several, until ctx ends. Whoever connects
// next takes it over.
func (m *Modem) Serve(ctx context.Context, l net.Listener) error {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("atmodem: %w", err)
		}
		p := &port{modem: m, conn: c, echo: true}
		m.mu.Lock()
		m.ports = append(m.ports, p)
		m.mu.Unlock()
		tasks.Go(func() {
			end := context.AfterFunc(ctx, func() { _ = c.Close() })
			defer end()
			p.serve()
		})
	}
}

// Network changes what the modem is attached to, and says so where it is to.
func (m *Modem) Network(change func(*Network)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.state.network)
	m.tell(m.state.changed(true, true))
	if m.state.session && !m.state.network.Registration.served() {
		m.hangUp()
	}
}

// Radio changes what the modem hears, and says so where it is to.
func (m *Modem) Radio(change func(*Radio)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.state.radio)
	m.tell(m.state.changed(false, true))
}

// SIM puts the SIM in, or takes it out.
func (m *Modem) SIM(in bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.noSIM = !in
}

// HangUp ends the session as the network does.
func (m *Modem) HangUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hangUp()
}

// Session reports whether there is a session.
func (m *Modem) Session() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.session
}

// Commands returns the newest command lines that were asked, the newest last.
func (m *Modem) Commands() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.commands)
}

// hangUp and tell are called with the lock held.
func (m *Modem) hangUp() {
	m.state.session = false
	for _, p := range m.ports {
		if p.dialled != nil {
			_ = p.dialled.Close() // ends the session's reads
			p.dialled = nil
			p.write(noCarrier)
		}
	}
}

func (m *Modem) tell(lines []string) {
	for _, p := range m.ports {
		if p.dialled != nil {
			continue
		}
		for _, line := range lines {
			p.write(line)
		}
	}
}

// port is one connection.
type port struct {
	modem   *Modem
	conn    net.Conn
	echo    bool
	dialled *io.PipeWriter // to the session; nil: command mode
}

// write writes a line as a modem does. Who has gone doesn't hear it.
func (p *port) write(line string) { _, _ = fmt.Fprintf(p.conn, "\r\n%s\r\n", line) }

// serve reads the port until it is closed.
func (p *port) serve() {
	var sessions sync.WaitGroup
	defer sessions.Wait()
	defer p.leave() // ends the session
	in := bufio.NewReader(p.conn)
	for {
		if w := p.session(); w != nil {
			if p.carry(in, w) != nil {
				return
			}
			continue
		}
		text, err := in.ReadString('\r')
		if err != nil {
			return
		}
		p.command(strings.Trim(text, "\r\n "), &sessions)
	}
}

func (p *port) session() *io.PipeWriter {
	p.modem.mu.Lock()
	defer p.modem.mu.Unlock()
	return p.dialled
}

// carry gives a session what has come in. Where it ended meanwhile, that is for the modem.
func (p *port) carry(in *bufio.Reader, w *io.PipeWriter) error {
	if _, err := in.Peek(1); err != nil {
		return err
	}
	if p.session() != w {
		return nil
	}
	buf := make([]byte, in.Buffered())
	n, err := in.Read(buf)
	if err != nil {
		return err
	}
	_, _ = w.Write(buf[:n]) // the session may have ended: then this was its own
	return nil
}

// command answers one command line, and begins a session where it was dialled.
func (p *port) command(text string, sessions *sync.WaitGroup) {
	m := p.modem
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.echo {
		_, _ = io.WriteString(p.conn, text+"\r")
	}
	r, is := m.state.line(text)
	if !is {
		return
	}
	if m.commands = append(m.commands, text); len(m.commands) > maxCommands {
		m.commands = m.commands[len(m.commands)-maxCommands:]
	}
	for _, c := range split(text[2:]) {
		switch strings.ToUpper(c) {
		case "E0", "E":
			p.echo = false
		case "E1", "Z", "&F":
			p.echo = true
		}
	}
	for _, line := range r.lines {
		p.write(line)
	}
	p.write(r.final)
	if r.final == connect {
		in, w := io.Pipe()
		p.dialled = w
		out := struct {
			io.Reader
			io.Writer
		}{in, p.conn}
		sessions.Go(func() {
			m.data(out)
			_ = in.Close()
		})
	}
}

// leave forgets the port. A session over it ends.
func (p *port) leave() {
	_ = p.conn.Close()
	m := p.modem
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.dialled != nil {
		_ = p.dialled.Close()
		p.dialled, m.state.session = nil, false
	}
	m.ports = slices.DeleteFunc(m.ports, func(q *port) bool { return q == p })
}
