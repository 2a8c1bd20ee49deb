package nl80211

import (
	"context"
	"sync"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"mihf.dev/sensors"
)

// awaitFamily tells retry when nl80211 appears, until ctx ends. Where that cannot be
// heard, it returns: then the sensor tries once a minute.
func (s *Sensor) awaitFamily(ctx context.Context, retry chan<- struct{}) {
	c, err := s.dial()
	if err != nil {
		return
	}
	var wg sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer wg.Wait()
	defer func() {
		if stop() {
			_ = c.Close()
		}
	}()
	if c.JoinGroup(unix.GENL_ID_CTRL) != nil { // the controller's only group has its own number
		return
	}
	for {
		list, _, err := c.Receive()
		if ctx.Err() != nil || (err != nil && !isErrno(err, unix.ENOBUFS)) {
			return
		}
		for _, m := range list {
			if !appears(m) {
				continue
			}
			select {
			case retry <- struct{}{}:
			default:
			}
		}
	}
}

// appears reports whether a message of the controller says that nl80211 is there now.
func appears(m genetlink.Message) bool {
	if m.Header.Command != unix.CTRL_CMD_NEWFAMILY {
		return false
	}
	name := ""
	err := sensors.Guard(func() error {
		return attributes(m.Data, func(ad *netlink.AttributeDecoder) error {
			if ad.Type() == unix.CTRL_ATTR_FAMILY_NAME {
				name = ad.String()
			}
			return nil
		})
	})
	return err == nil && name == familyName
}
