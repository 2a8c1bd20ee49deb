package atmodem

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// "What the test sets is what the next answer says"; "every command line gets one final result;
// what is not known is ERROR".
func TestCommands(t *testing.T) {
	searching := func(s *state) { s.network.Registration = Searching }
	for _, c := range []struct {
		line string
		set  func(*state)
		want []string
	}{
		{"AT", nil, []string{"OK"}},
		{"ATE0V1&C1S0=0+CMEE=1", nil, []string{"OK"}},
		{"ati", nil, []string{"Testwerk", "LTE-1", "1.0", "OK"}},
		{"AT+CGSN", nil, []string{"490154203237518", "OK"}},
		{"AT+CSQ;+CESQ", nil, []string{"+CSQ: 21,99", "+CESQ: 99,99,255,255,22,51", "OK"}},
		{"AT+CESQ", func(s *state) { s.network.Access = UMTS }, []string{"+CESQ: 99,99,26,37,255,255", "OK"}},
		{"AT+CESQ", func(s *state) { s.network.Access = GSM }, []string{"+CESQ: 40,99,255,255,255,255", "OK"}},
		{"AT+CESQ", searching, []string{"+CESQ: 99,99,255,255,255,255", "OK"}},
		{"AT+CEREG=2;+CEREG?", nil, []string{`+CEREG: 2,1,"1A2B","01C3D4E5",7`, "OK"}},
		{"AT+CREG?", searching, []string{"+CREG: 0,2", "OK"}},
		{"AT+COPS=3,2;+COPS?", nil, []string{`+COPS: 0,2,"26201",7`, "OK"}},
		{"AT+COPS=3,0;+COPS?", nil, []string{`+COPS: 0,0,"Testnet",7`, "OK"}},
		{"AT+COPS?", searching, []string{"+COPS: 0", "OK"}},
		{"AT+CIND?", nil, []string{"+CIND: 5,4,1,0", "OK"}},
		{"AT+CIND?", searching, []string{"+CIND: 5,0,0,0", "OK"}},
		{"AT+CPIN?", nil, []string{"+CPIN: READY", "OK"}},
		{"AT+CPIN?", func(s *state) { s.noSIM = true }, []string{"+CME ERROR: 10"}},
		{"AT+CFUN=4;+CFUN?", nil, []string{"+CFUN: 4", "OK"}},
		{"AT+CRSM=176,28589,0,0,4", nil, []string{`+CRSM: 144,0,"00000002"`, "OK"}},
		{"AT+CLAC=?;+CSQ", nil, []string{"ERROR"}},
		{"AT^SYSINFO", nil, []string{"ERROR"}},
		{"ATD*99***1#", nil, []string{"CONNECT 100000000"}},
		{"ATD*99***1#", searching, []string{"NO CARRIER"}},
		{"CSQ", nil, nil},
	} {
		s := newState(Config{IMEI: "490154203237518", Manufacturer: "Testwerk", Model: "LTE-1"})
		if c.set != nil {
			c.set(s)
		}
		var got []string
		if r, is := s.line(c.line); is {
			got = append(r.lines, r.final)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", c.line, d)
		}
	}
	s := newState(Config{Refuse: []string{"+CESQ"}})
	if r, _ := s.line("AT+CESQ"); r.final != failed {
		t.Errorf("a refused command gives %+v", r)
	}
}

// client is a program at a port.
type client struct {
	*testing.T
	net.Conn
	in *bufio.Reader
}

// say sends a command line.
func (c *client) say(line string) {
	c.Helper()
	if _, err := io.WriteString(c.Conn, line+"\r"); err != nil {
		c.Fatal(err)
	}
}

// want reads lines that are not empty and compares them.
func (c *client) want(want ...string) {
	c.Helper()
	for _, w := range want {
		got := ""
		for got == "" {
			line, err := c.in.ReadString('\n')
			if err != nil {
				c.Fatalf("%v, want %s", err, w)
			}
			got = strings.Trim(line, "\r\n")
		}
		if got != w {
			c.Fatalf("got %q, want %q", got, w)
		}
	}
}

// serve returns a modem with two clients, without echo.
func serve(t *testing.T, cfg Config) (*Modem, [2]*client) {
	t.Helper()
	m := New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	var clients [2]*client
	dir := t.TempDir()
	for n := range clients {
		path := filepath.Join(dir, fmt.Sprint(n))
		l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		go func() { ended <- m.Serve(ctx, l) }()
		c, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		clients[n] = &client{t, c, bufio.NewReader(c)}
		clients[n].say("ATE0")
		clients[n].want("ATE0", "OK")
	}
	t.Cleanup(func() {
		cancel()
		for _, c := range clients {
			if err := <-ended; err != nil {
				t.Error(err)
			}
			_ = c.Close()
		}
	})
	return m, clients
}

// "What a subscribed unsolicited line says at once."
func TestTells(t *testing.T) {
	m, c := serve(t, Config{})
	c[0].say("AT+CEREG=2;+CMER=3,0,0,1")
	c[0].want("OK")
	m.Network(func(n *Network) { n.Cell = 7 })
	c[0].want(`+CEREG: 1,"1A2B","00000007",7`, "+CIEV: 2,4", "+CIEV: 3,1", "+CIEV: 4,0")
	c[1].want(`+CEREG: 1,"1A2B","00000007",7`)
	m.Radio(func(r *Radio) { r.Bars = 1 })
	c[0].want("+CIEV: 2,1")
	m.SIM(false)
	c[0].say("AT+CIMI")
	c[0].want("+CME ERROR: 10")
	if got := m.Commands(); !slices.Contains(got, "AT+CIMI") {
		t.Errorf("commands %q", got)
	}
}

// "A dialled port is in data mode until the session ends; what comes in is Config.Data's, and other
// ports go on answering."
func TestSession(t *testing.T) {
	m, c := serve(t, Config{Data: func(p io.ReadWriter) {
		_, _ = io.Copy(p, p) // an echo
	}})
	for range 2 {
		c[0].say("ATD*99#")
		c[0].want("CONNECT 100000000")
		c[0].say("AT\n")
		c[0].want("AT")
		c[1].say("AT+CGACT?")
		c[1].want("+CGACT: 1,1", "OK")
		m.HangUp()
		c[0].want("NO CARRIER")
		c[0].say("AT")
		c[0].want("OK")
	}
	c[0].say("ATD*99#")
	c[0].want("CONNECT 100000000")
	m.Network(func(n *Network) { n.Registration = Searching })
	c[0].want("NO CARRIER")
	if m.Session() {
		t.Error("there is a session without a network")
	}
}

// FuzzLine: every line that begins with AT gets one final result, in a time that its length bounds.
func FuzzLine(f *testing.F) {
	for _, line := range []string{"AT", "ATE0V1+CMEE=1;+CSQ", "ATD*99#", "AT+CRSM=176,28589", "AT&", "AT;;", "AT+", "AT+=?", "AT=?", "AT?"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		r, is := newState(Config{}).line(line)
		if is != (len(strings.TrimSpace(line)) >= 2 && strings.EqualFold(strings.TrimSpace(line)[:2], "AT")) {
			t.Errorf("%q is a command line: %v", line, is)
		}
		if is && r.final == "" {
			t.Errorf("%q has no final result", line)
		}
	})
}
