package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"mihf.dev/clients"
	"mihf.dev/clients/mihnats"
	"mihf.dev/cmd/internal/show"
	"mihf.dev/mihf"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a command line that is wrong.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// hinted is an error with what to do about it.
type hinted struct {
	error
	hint string
}

func (e hinted) Unwrap() error { return e.error }

// explained says what an error of the daemon or of the way to it means, and what to do.
func (a *app) explained(ctx context.Context, err error) error {
	where := a.where()
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return hinted{
			fmt.Errorf("the daemon at %s did not answer within %v: %w", where, a.timeout, err),
			"is it overloaded or stopped? A longer --timeout waits longer",
		}
	case errors.Is(err, mihf.ErrClosed):
		return a.unreachable(where, err)
	case errors.Is(err, mihf.ErrPermission):
		return hinted{err, a.permissionHint(err)}
	case errors.Is(err, mihnats.ErrWhichNode):
		return hinted{err, "give --node or MIHF_NODE"}
	default:
		return err
	}
}

func (a *app) permissionHint(err error) string {
	switch {
	case errors.Is(err, nats.ErrAuthorization):
		return "give --creds, --nkey, or --user with --password-file: the server lets in nobody whom it does not know"
	case errors.Is(err, nats.ErrPermissionViolation):
		return "the NATS server's permissions for this user do not include that, or --node is another host's; docs/nats.md tells which are needed"
	case a.front() == viaDBus && !strings.Contains(err.Error(), mihf.ErrPermission.Error()): // the broker would say that
		return "the message bus's own policy forbids it: join the group that dev.mihf.MIHF1.conf lets through (mihf), and log in again"
	}
	return "root and the daemon's own user may do this, and those to whom [access] in its configuration grants it"
}

// unreachable explains that the daemon, or what is between it and us, is not there.
func (a *app) unreachable(where string, err error) error {
	front := a.front()
	if front == viaGRPC {
		if path, ok := forbidden(where); ok {
			return hinted{
				fmt.Errorf("you may not connect to %s: %w", where, err),
				"join the group that owns " + path + " (usually mihf), or run as root",
			}
		}
	}
	if s := err.Error(); strings.Contains(s, "tls: ") || strings.Contains(s, "x509: ") { // the libraries give the reason as text only
		return hinted{
			fmt.Errorf("no trust between us and %s: %w", where, err),
			"each side must name the authority of the other's certificate: --ca here, " + map[string]string{
				viaGRPC: "grpc.client_ca in the daemon's configuration", viaNATS: "the NATS server's own configuration there",
			}[front],
		}
	}
	return hinted{fmt.Errorf("no daemon answers at %s: %w", where, err), startHints[front]}
}

// startHints say what to do where nobody answers.
var startHints = map[string]string{
	viaGRPC: "start mihfd, or give --address",
	viaNATS: "start mihfd with nats.server in its configuration, or give the server's --address",
	viaDBus: "start mihfd with dbus.bus in its configuration, or give the bus as --address: system, session, or its own",
}

// forbidden reports whether the address is a socket that we may not write to.
func forbidden(address string) (path string, ok bool) {
	network, path, err := clients.ParseAddress(address)
	if err != nil || network != "unix" {
		return "", false
	}
	return path, errors.Is(unix.Access(path, unix.W_OK), unix.EACCES)
}

// usage tells how to use a command; of no command it tells how to find one.
func usage(cmd *cobra.Command) string {
	if cmd == nil || !cmd.HasParent() {
		return `"mihctl help" shows the commands, "mihctl help COMMAND" how to use one`
	}
	return fmt.Sprintf("usage: %s; %q tells more", cmd.UseLine(), "mihctl help "+strings.TrimPrefix(cmd.CommandPath(), "mihctl "))
}

// report prints what went wrong with the command and returns the exit code.
func (a *app) report(ctx context.Context, cmd *cobra.Command, args []string, err error) int {
	switch {
	case err == nil, errors.Is(err, unix.EPIPE):
		return exitOK
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		err = errors.New("interrupted")
	}
	code, hint := exitFailed, ""
	if h, ok := errors.AsType[hinted](err); ok {
		hint = h.hint
	}
	if _, ok := errors.AsType[usageError](err); ok || !a.started {
		code = exitUsage
		if hint == "" {
			hint = usage(cmd)
		}
	}
	text := show.Text(firstLine(err.Error()))
	if a.json || slices.Contains(args, "--json") {
		b, _ := json.Marshal(struct { // strings always encode
			Error string `json:"error"`
			Hint  string `json:"hint,omitempty"`
		}{text, hint})
		_, _ = fmt.Fprintln(a.err, string(b)) // there is nowhere else to say it
		return code
	}
	if hint != "" {
		text += "\n" + hint
	}
	_, _ = fmt.Fprintln(a.err, "mihctl: "+text) // there is nowhere else to say it
	return code
}

// warn says on standard error what did not go as asked although the command went well.
func (a *app) warn(lines ...string) {
	for _, s := range lines {
		s = show.Text(s)
		if a.json {
			b, _ := json.Marshal(map[string]string{"warning": s}) // strings always encode
			s = string(b)
		} else {
			s = "mihctl: " + s
		}
		_, _ = fmt.Fprintln(a.err, s) // there is nowhere else to say it
	}
}

// firstLine leaves out what cobra suggests below an error.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
