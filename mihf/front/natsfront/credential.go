package natsfront

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// Credential is how the daemon proves to a server who it is. The zero Credential proves
// nothing.
type Credential struct {
	path string        // of a .creds file
	key  nkeys.KeyPair // of a user
	user *url.Userinfo // with a password
}

// ReadCredential reads a file with a credential: a .creds file, the seed of a user nkey, or
// a line user:password.
func ReadCredential(path string) (Credential, error) {
	text, err := ReadSecretFile(path)
	if err != nil {
		return Credential{}, err
	}
	c, err := parseCredential(text)
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	if c == (Credential{}) {
		c.path = path
	}
	return c, nil
}

// parseCredential reads a credential. That of a .creds file is read by who connects.
func parseCredential(text []byte) (c Credential, err error) {
	if bytes.Contains(text, []byte("-----BEGIN NATS USER JWT-----")) {
		if _, err := nkeys.ParseDecoratedUserNKey(text); err != nil {
			return c, fmt.Errorf("the .creds file has no seed of a user: %w", err)
		}
		return c, nil
	}
	line := strings.TrimSpace(string(text))
	if strings.ContainsAny(line, "\r\n") {
		return c, errors.New("has more than one line, and is no .creds file")
	}
	if strings.HasPrefix(line, "SU") && !strings.Contains(line, ":") {
		c.key, err = nkeys.FromSeed([]byte(line))
		if err != nil {
			return c, fmt.Errorf("the seed is not one of a user nkey: %w", err)
		}
		return c, nil
	}
	user, password, found := strings.Cut(line, ":")
	if !found || user == "" || password == "" {
		return c, errors.New("is neither a .creds file, nor a seed of a user nkey, nor a line user:password")
	}
	c.user = url.UserPassword(user, password)
	return c, nil
}

// Options returns the credential for a connection.
func (c Credential) Options() []nats.Option {
	switch {
	case c.path != "":
		return []nats.Option{nats.UserCredentials(c.path)}
	case c.key != nil:
		return []nats.Option{func(o *nats.Options) error {
			option, err := keyOption(c.key)
			if err != nil {
				return err
			}
			return option(o)
		}}
	case c.user != nil:
		password, _ := c.user.Password()
		return []nats.Option{nats.UserInfo(c.user.Username(), password)}
	}
	return nil
}

// leaf puts the credential into what a leaf node connects with.
func (c Credential) leaf(o *server.RemoteLeafOpts) error {
	o.Credentials = c.path
	if c.user != nil {
		for i, u := range o.URLs {
			with := *u
			with.User = c.user
			o.URLs[i] = &with
		}
	}
	if c.key == nil {
		return nil
	}
	public, err := c.key.PublicKey()
	if err != nil {
		return err
	}
	o.Nkey = public
	o.SignatureCB = func(nonce []byte) (string, []byte, error) {
		signature, err := c.key.Sign(nonce)
		return "", signature, err
	}
	return nil
}
