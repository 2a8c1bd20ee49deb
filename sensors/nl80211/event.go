package nl80211

import (
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"mihf.dev/mihf"
)

// event is a message of the kernel that nobody asked for: a reason to look, with what
// only the message says.
type event struct {
	cmd   uint8
	index int // 0: not about an interface

	reason mihf.Opt[uint16] // of a disconnection, 802.11 reason code
	status mihf.Opt[uint16] // of an attempt, 802.11 status code; 0: it succeeded
	byAP   bool             // the access point ended it
	failed bool             // the attempt timed out

	cqm cqm
}

// cqm is what NL80211_CMD_NOTIFY_CQM says.
type cqm struct {
	low, high  bool // the signal crossed a threshold, whoever set it
	beaconLoss bool
	losses     bool // packets were lost
}

func decodeEvent(cmd uint8, data []byte) (event, error) {
	e := event{cmd: cmd}
	err := attributes(data, func(ad *netlink.AttributeDecoder) error {
		switch ad.Type() {
		case unix.NL80211_ATTR_IFINDEX:
			e.index = int(ad.Int32())
		case unix.NL80211_ATTR_REASON_CODE:
			e.reason = mihf.Some(ad.Uint16())
		case unix.NL80211_ATTR_STATUS_CODE:
			e.status = mihf.Some(ad.Uint16())
		case unix.NL80211_ATTR_DISCONNECTED_BY_AP:
			e.byAP = true
		case unix.NL80211_ATTR_TIMED_OUT:
			e.failed = true
		case unix.NL80211_ATTR_CQM:
			return nested(ad, e.cqm.read)
		}
		return nil
	})
	if err != nil {
		return event{}, fmt.Errorf("message %d: %w", cmd, err)
	}
	return e, nil
}

func (c *cqm) read(ad *netlink.AttributeDecoder) error {
	switch ad.Type() {
	case unix.NL80211_ATTR_CQM_RSSI_THRESHOLD_EVENT:
		switch ad.Uint32() {
		case unix.NL80211_CQM_RSSI_THRESHOLD_EVENT_LOW:
			c.low = true
		case unix.NL80211_CQM_RSSI_THRESHOLD_EVENT_HIGH:
			c.high = true
		}
	case unix.NL80211_ATTR_CQM_BEACON_LOSS_EVENT:
		c.beaconLoss = true
	case unix.NL80211_ATTR_CQM_PKT_LOSS_EVENT, unix.NL80211_ATTR_CQM_TXE_PKTS:
		c.losses = true
	}
	return nil
}

// reasonOf translates an 802.11 reason code that the access point gave.
func reasonOf(code uint32) mihf.DownReason {
	switch code {
	case 2, 9, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24: // not or no longer authenticated; key exchange, 802.1X, ciphers
		return mihf.DownAuthenticationFailure
	case 5, 32, 33: // cannot handle more stations; quality of service, bandwidth
		return mihf.DownNoResource
	case 4, 34, 39: // inactivity; poor channel; the peer timed out
		return mihf.DownPacketTimeout
	default:
		return mihf.DownExplicitDisconnect
	}
}
