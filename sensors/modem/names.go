package modem

import "github.com/godbus/dbus/v5"

// ModemManager's names on the bus.
const (
	service  = "org.freedesktop.ModemManager1"
	rootPath = dbus.ObjectPath("/org/freedesktop/ModemManager1")

	modemInterface    = service + ".Modem"
	gppInterface      = service + ".Modem.Modem3gpp"
	signalInterface   = service + ".Modem.Signal"
	locationInterface = service + ".Modem.Location"
	bearerInterface   = service + ".Bearer"

	properties    = "org.freedesktop.DBus.Properties"
	objectManager = "org.freedesktop.DBus.ObjectManager"
)

// MMModemState.
const (
	stateFailed       = -1
	stateInitializing = 1
	stateLocked       = 2
	stateEnabled      = 6
	stateRegistered   = 8
	stateConnected    = 11
)

// failures are the texts of MMModemStateFailedReason.
var failures = map[uint32]string{
	2: "the SIM is missing", 3: "the SIM has an error, or is none", 4: "its capabilities are not known", 5: "its eSIM has no profile",
}

// MMModemStateChangeReason.
const (
	reasonUser    = 1
	reasonSuspend = 2
)

// MMModem3gppRegistrationState.
const (
	registrationIdle      = 0
	registrationSearching = 2
	registrationDenied    = 3
)

// Groups of MMModemAccessTechnology.
const (
	accessGSM  = 1<<1 | 1<<2 | 1<<3 | 1<<4
	accessUMTS = 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<9
	accessCDMA = 1<<10 | 1<<11 | 1<<12 | 1<<13
	accessLTE  = 1<<14 | 1<<16 | 1<<17
	accessNR   = 1 << 15
	accessAny  = 1<<32 - 1
)

const (
	portNet       = 2      // MMModemPortType
	locationLacCi = 1 << 0 // MMModemLocationSource
)

// Bounds.
const (
	maxModems  = 16
	maxBearers = 16 // of a modem
	maxObjects = 256
	maxText    = 256 // octets of an identifier
)

// Ways to say that something is not known.
const (
	noValue  = -1e300 // and below: MM_SIGNAL_UNKNOWN is the least number that there is
	noCell16 = 1<<16 - 1
	noCell28 = 1<<28 - 1
	noCell32 = 1<<32 - 1
	noCell36 = 1<<36 - 1
)
