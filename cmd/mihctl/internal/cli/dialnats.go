package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mihf.dev/clients"
	"mihf.dev/clients/mihnats"
	"mihf.dev/cmd/internal/wiring"
	"mihf.dev/mihf"
	"mihf.dev/mihf/front/natsfront"
)

// natsFlags say which daemon is meant, and who we are to the server.
type natsFlags struct{ node, creds, nkey, user, password string }

func (n *natsFlags) all() []natsFlag {
	return []natsFlag{
		{&n.node, "node", "MIHF_NODE", "for NATS: the host whose daemon is asked (default $MIHF_NODE, else the only one there)"},
		{&n.creds, "creds", "MIHF_CREDS", "for NATS: `file` of credentials, as nsc makes them (default $MIHF_CREDS)"},
		{&n.nkey, "nkey", "MIHF_NKEY", "for NATS: `file` with the seed of a user's key (default $MIHF_NKEY)"},
		{&n.user, "user", "MIHF_USER", "for NATS: the user (default $MIHF_USER)"},
		{&n.password, "password-file", "MIHF_PASSWORD_FILE", "for NATS: `file` with the user's password, of mode 0640 or less (default $MIHF_PASSWORD_FILE)"},
	}
}

type natsFlag struct {
	value             *string
	name, environment string
	usage             string
}

func (n *natsFlags) add(f *pflag.FlagSet) {
	for _, x := range n.all() {
		f.StringVar(x.value, x.name, "", x.usage)
	}
}

// given returns a flag of these on the command line; "": there is none.
func (n *natsFlags) given() string {
	for _, x := range n.all() {
		if *x.value != "" {
			return "--" + x.name
		}
	}
	return ""
}

// withEnvironment returns what is in force.
func (n *natsFlags) withEnvironment() natsFlags {
	c := *n
	for _, x := range c.all() {
		*x.value = cmp.Or(*x.value, os.Getenv(x.environment))
	}
	return c
}

func (a *app) dialNATS() (clients.Client, error) { return a.openNATS() }

func (a *app) openNATS() (*mihnats.Client, error) {
	secure, err := checkURLs(a.where())
	if err != nil {
		return nil, err
	}
	n := a.nats.withEnvironment()
	o := mihnats.Options{Node: mihf.NodeID(n.node), User: n.user, Credentials: n.creds, NkeySeed: n.nkey, Timeout: a.timeout}
	if n.password != "" {
		if n.user == "" {
			return nil, usagef("--password-file needs --user")
		}
		b, err := natsfront.ReadSecretFile(n.password)
		if err != nil {
			return nil, fmt.Errorf("--password-file: %w", err)
		}
		o.Password = strings.TrimRight(string(b), "\r\n")
	}
	for flag, file := range map[string]string{"--creds": n.creds, "--nkey": n.nkey} {
		if file == "" {
			continue
		}
		if _, err := natsfront.ReadSecretFile(file); err != nil { // the library would try for ever
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
	}
	if o.TLS, err = a.natsTLS(secure); err != nil {
		return nil, err
	}
	return mihnats.Dial(a.where(), o)
}

// checkURLs refuses what the library would take for something else. secure: one of them
// wants TLS.
func checkURLs(list string) (secure bool, err error) {
	for s := range strings.SplitSeq(list, ",") {
		full := strings.TrimSpace(s)
		if !strings.Contains(full, "://") {
			full = "nats://" + full
		}
		u, err := url.Parse(full)
		if err != nil || u.Hostname() == "" || (u.Scheme != "nats" && u.Scheme != "tls") || strings.Trim(u.Path, "/") != "" {
			return false, usagef("address %q: want nats://host:port or tls://host:port, or several with commas between", s)
		}
		if _, has := u.User.Password(); has {
			return false, hinted{usagef("address nats://…@%s: everyone on this machine can read a password there", u.Host), "give --user and --password-file"}
		}
		secure = secure || u.Scheme == "tls"
	}
	return secure, nil
}

// natsTLS returns our side of TLS: what the files say where there are any; nil: the library's
// own, if the server wants TLS at all.
func (a *app) natsTLS(secure bool) (*tls.Config, error) {
	cert, key, ca, _ := a.pems()
	if !secure && a.tls.cert == "" && a.tls.key == "" && a.tls.ca == "" {
		return nil, nil // what the environment says is for another server
	}
	if cert == "" && key == "" && ca == "" {
		return nil, nil
	}
	if (cert == "") != (key == "") {
		return nil, usagef("--cert and --key go together")
	}
	return wiring.ClientTLS(cert, key, ca)
}

// completeNodes gives the nodes that answer.
func (a *app) completeNodes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, err := a.openNATS()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer func() { _ = c.Close() }() // nothing is lost with it
	ctx, cancel := context.WithTimeout(cmd.Context(), completeFor)
	defer cancel()
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = mihf.EscapeString(string(n))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
