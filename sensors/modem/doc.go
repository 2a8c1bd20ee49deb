// Package modem is the sensor for mobile broadband: registration, bearers, cells and signal,
// by ModemManager on a message bus. It never talks to a modem itself.
//
// # Guarantees
//
//   - A signal of ModemManager is a reason to look: all modems are read at once
//     (GetManagedObjects), and what is published is the difference. Taken from signals is a
//     modem's state with its reason, and that a modem is gone: neither waits for a look.
//   - Modems are found by ModemManager's list alone, and known by their equipment id (IMEI),
//     else ModemManager's device id, else the device: a modem that is plugged in again or
//     reset has its old link, whatever its object is called now. What object it was is
//     forgotten, and calls to it under way are given up.
//   - Where a modem has a network interface, its link is that interface's, with the id that
//     the sensor of links gives it ([Options.Link]); before that sensor said that it is there
//     nothing is said of it, for 3 s at most. Else the modem is a link of its own.
//   - A link is attached while ModemManager says that the modem is connected, a bearer is (where
//     its bearers are known), and the modem is not without a network.
//   - Only what ModemManager gave is a value: its sentinels (-1.8e308, 99, 255), and what the
//     quantity cannot be, are none. A percentage that is not recent is none. One series is one
//     quantity of one technology: LTE, 5G NR, UMTS and GSM never mix.
//   - Nothing is asked of a modem that is not enabled, and of no modem twice what it refused.
//     Signals are asked for by thresholds, where the modem takes them and nobody has set any;
//     else by ModemManager's polling, every [Options.Poll]. A polling of others is never made
//     slower. What was set is taken back when Run ends.
//   - Every call ends after 2 s; at most 8 are under way. One modem's slowness holds up no other.
//   - The end of ModemManager (its name has no owner) makes what is known of its modems unknown;
//     a new one is read at once. No answer, and a lost bus, change nothing: what is known stays,
//     and the condition says so.
//   - An object that is unknown to ModemManager is gone, and only that. A property of another
//     type is counted and absent; one bad modem hides no other.
//   - What waits to be read is bounded; where it was not enough, all is read again, and then
//     comes mihf.ObsResync, as after a lost bus and a suspend.
//
// # Limits
//
//   - A PPP session's interface is made by pppd, and ModemManager doesn't know it: such a modem is
//     a link of its own, beside the kernel's ppp interface.
//   - Of several connected bearers the first with an interface counts.
//   - The cell is known where ModemManager gathers it (Location, 3gpp-lac-ci) and lets us read
//     it. Neighbour cells are not asked for: some modems drop their session over it.
//   - CDMA networks have no values here.
//   - ModemManager says nothing of a reading that equals the one before; while it polls, a reading
//     that stands is published again, at most one polling interval old.
//   - At most 16 modems are followed, with 16 bearers each.
package modem
