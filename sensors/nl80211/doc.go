// Package nl80211 is the sensor for Wi-Fi: attachment, signal, scans and access points that
// were heard, by nl80211. It needs no capability, unless it is told to set thresholds.
//
// # Guarantees
//
//   - A message of the kernel is only a reason to look: the attachment is read, and what is
//     published is the difference. Taken from messages is why it ended, and that it did: a look
//     may be held up by the driver just then. What is read next stands. A lost message costs
//     time, not truth.
//   - A link has the id that the sensor of links gives it ([Options.Link]), and nothing is
//     said of it before that sensor said that it is there.
//   - A station is attached when the kernel shows it as authorised. A station entry alone,
//     which the kernel makes before it authenticates, is no attachment; an empty list of
//     stations alone is no end of one.
//   - Only what the driver gave is a value. A signal of 0 dBm and one outside -110 to -10 dBm
//     are none. One parameter is one attribute of the driver. SSIDs are octets.
//   - The signal is read every [Options.PollFar], and every [Options.PollNear] while it is
//     weaker than [Options.Near], would be so before the next reading but one if it goes on
//     falling, the kernel warned, or the attachment is new.
//   - No scan is ever begun, and no threshold set unless [Options.SetCQM] says so.
//   - Of a multi-link association the best leg counts: it is one link, its point of
//     attachment is the address of the multi-link device.
//   - Lost messages (the socket overflowed), a failed socket and a suspend lead to a complete
//     reading, whose difference is published, and then mihf.ObsResync.
//   - A list that changed while it was read is read again, up to three times; a torn one
//     changes nothing. A malformed message is counted and skipped.
//   - What the driver refuses or lacks is told in the condition, and ends nothing. Where
//     nl80211 is missing, it is looked for when the kernel says that it appears.
//
// # Limits
//
//   - A change that is undone before it was looked at is not seen: a reconnection to the same
//     access point within a few milliseconds.
//   - The kernel doesn't say when a supplicant opens the port. While an association is under
//     way it is looked at every 25 ms.
//   - At most 64 interfaces are followed, and 64 detections given for a scan.
//   - Interfaces of access points, monitors and P2P devices are not followed. In an ad-hoc
//     network or mesh the peer that is heard best counts.
//   - A threshold that was set is not taken back: the kernel drops it with the association.
//   - Requests of access points to move elsewhere (802.11v) go to the supplicant and are not
//     seen here.
//   - A request that hangs in a driver holds the sensor up as long as it hangs.
package nl80211
