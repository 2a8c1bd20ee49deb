package wiring

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"mihf.dev/mihf/config"
	"mihf.dev/mihf/front"
	"mihf.dev/mihf/front/encoded"
	"mihf.dev/mihf/front/natsfront"
	"mihf.dev/mihf/front/pseudonym"
)

// keyName is the key's file in the state directory.
const keyName = "poa-key"

// PoAKey returns what hides points of attachment from other hosts; nil where they may be known
// there, or no front reaches other hosts. The key is made in the state directory where it is
// neither configured nor there.
func PoAKey(c *config.Config, state string) (*pseudonym.Key, error) {
	if !hidesPoAs(c) {
		return nil, nil
	}
	if c.Privacy.PoAKeyFile != "" {
		return readPoAKey(c.Privacy.PoAKeyFile)
	}
	if state == "" {
		return nil, errors.New("a key for privacy.poa_ids: there is no state directory")
	}
	path := filepath.Join(state, keyName)
	key, err := readPoAKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makePoAKey(path); err == nil {
			key, err = readPoAKey(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf(`%w; name one with privacy.poa_key_file, or set privacy.poa_ids = "plain"`, err)
	}
	return key, nil
}

func hidesPoAs(c *config.Config) bool {
	return c.Privacy.PoAIDs != config.PoAsPlain && (c.GRPC.Listen != "" || c.NATS.OffHost())
}

// checkPoAKey finds what is wrong with the file that the configuration names.
func checkPoAKey(c *config.Config) error {
	if !hidesPoAs(c) || c.Privacy.PoAKeyFile == "" {
		return nil
	}
	_, err := readPoAKey(c.Privacy.PoAKeyFile)
	return config.At("privacy.poa_key_file", err)
}

// newEvents returns the stores of events for listeners on this host, and for those on others.
func newEvents(c *config.Config, state string, b front.Broker) (here, elsewhere *encoded.Events, err error) {
	here = encoded.New(b.Node(), b.Now)
	key, err := PoAKey(c, state)
	if key == nil {
		return here, here, err
	}
	return here, encoded.Hidden(b.Node(), b.Now, key), nil
}

func readPoAKey(path string) (*pseudonym.Key, error) {
	octets, err := natsfront.ReadSecretFile(path)
	if err != nil {
		return nil, fmt.Errorf("the key of privacy.poa_ids: %w", err)
	}
	if len(octets) != pseudonym.KeySize {
		return nil, fmt.Errorf("the key of privacy.poa_ids: %s has %d octets, not %d random ones", path, len(octets), pseudonym.KeySize)
	}
	return (*pseudonym.Key)(octets), nil
}

// makePoAKey makes a key that is there whole or not at all; one that somebody else makes at the
// same moment stays.
func makePoAKey(path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("a key for privacy.poa_ids: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+keyName+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("a key for privacy.poa_ids: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // it has its name by then, or is of no use
	var key pseudonym.Key
	_, _ = rand.Read(key[:]) // never fails
	_, err = f.Write(key[:])
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Link(f.Name(), path)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("a key for privacy.poa_ids: %w", err)
	}
	return nil
}
