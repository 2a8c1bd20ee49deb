package cli

import (
	"cmp"
	"crypto/tls"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"mihf.dev/clients"
	"mihf.dev/clients/mihgrpc"
	"mihf.dev/cmd/internal/wiring"
)

// The fronts, as --via names them.
const (
	viaGRPC = "grpc"
	viaNATS = "nats"
	viaDBus = "dbus"
)

var vias = []string{viaGRPC, viaNATS, viaDBus}

// connectionFlags adds the flags that say where the daemon is and who we are.
func (a *app) connectionFlags(c *cobra.Command) {
	f := c.PersistentFlags()
	f.StringVar(&a.via, "via", "", "which front of the daemon to speak to: grpc, nats or dbus (default $MIHF_VIA, else grpc)")
	f.StringVar(&a.address, "address", "", "where the daemon is: unix:///path or host:port; URLs of NATS servers; system, session or a bus's address\n"+
		"(default $MIHF_ADDRESS, $MIHF_NATS_ADDRESS or $MIHF_DBUS_ADDRESS, else the usual place)")
	f.StringVar(&a.tls.cert, "cert", "", "for TLS: PEM `file` of our certificate (default $MIHF_CERT)")
	f.StringVar(&a.tls.key, "key", "", "for TLS: PEM `file` of the certificate's key (default $MIHF_KEY)")
	f.StringVar(&a.tls.ca, "ca", "", "for TLS: PEM `file` of the authority of the other side's certificate (default $MIHF_CA)")
	a.nats.add(f)
	must(c.RegisterFlagCompletionFunc("via", cobra.FixedCompletions(vias, cobra.ShellCompDirectiveNoFileComp)))
	must(c.RegisterFlagCompletionFunc("node", a.completeNodes))
	for _, name := range []string{"cert", "key", "ca", "creds", "nkey", "password-file"} {
		must(c.MarkPersistentFlagFilename(name))
	}
}

// front returns which front is spoken to.
func (a *app) front() string { return cmp.Or(a.via, os.Getenv("MIHF_VIA"), viaGRPC) }

// where returns the address in force, for people to read.
func (a *app) where() string {
	switch a.front() {
	case viaNATS:
		return cmp.Or(a.address, os.Getenv("MIHF_NATS_ADDRESS"), "nats://127.0.0.1:4222")
	case viaDBus:
		return cmp.Or(a.address, os.Getenv("MIHF_DBUS_ADDRESS"), anyBus)
	default:
		return cmp.Or(a.address, clients.DefaultAddress())
	}
}

func (a *app) dial() (clients.Client, error) {
	front := a.front()
	if flag := a.nats.given(); flag != "" && front != viaNATS {
		return nil, hinted{usagef("%s is for --via nats", flag), "leave it out, or add --via nats"}
	}
	switch front {
	case viaGRPC:
		return a.dialGRPC()
	case viaNATS:
		return a.dialNATS()
	case viaDBus:
		return a.dialDBus()
	default:
		return nil, usagef("--via %s: want one of %s", front, strings.Join(vias, ", "))
	}
}

func (a *app) dialGRPC() (clients.Client, error) {
	network, _, err := clients.ParseAddress(a.where())
	if err != nil {
		return nil, usageError{err}
	}
	var o mihgrpc.Options
	if network == "tcp" {
		if o.TLS, err = a.mutualTLS(); err != nil {
			return nil, err
		}
	}
	return mihgrpc.Dial(a.where(), o)
}

// pems returns the PEM files in force, by the names of their flags.
func (a *app) pems() (cert, key, ca string, missing []string) {
	for _, f := range []struct {
		path, flagged     *string
		flag, environment string
	}{{&cert, &a.tls.cert, "--cert", "MIHF_CERT"}, {&key, &a.tls.key, "--key", "MIHF_KEY"}, {&ca, &a.tls.ca, "--ca", "MIHF_CA"}} {
		if *f.path = cmp.Or(*f.flagged, os.Getenv(f.environment)); *f.path == "" {
			missing = append(missing, f.flag)
		}
	}
	return cert, key, ca, missing
}

// mutualTLS returns our side of TLS where both sides show certificates.
func (a *app) mutualTLS() (*tls.Config, error) {
	cert, key, ca, missing := a.pems()
	if len(missing) > 0 {
		return nil, hinted{
			usagef("address %q: over TCP both sides show certificates; missing: %s", a.where(), strings.Join(missing, ", ")),
			"give PEM files with --cert, --key and --ca or MIHF_CERT, MIHF_KEY and MIHF_CA, or the address of a unix socket",
		}
	}
	return wiring.ClientTLS(cert, key, ca)
}
