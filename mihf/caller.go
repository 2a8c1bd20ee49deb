package mihf

import "fmt"

// Caller is who asks something of a broker, as its front authenticated it.
type Caller struct {
	Front string // "inproc", "grpc", "nats", "dbus"
	UID   Opt[uint32]
	GID   Opt[uint32]
	PID   int
	// Name is who a caller without a uid is: on "grpc" the common name of its certificate,
	// on "nats" the NATS user. "": it has none.
	Name string
}

// Identity tells callers apart, whatever connection or process they come from. It is
// comparable.
type Identity struct {
	kind identityKind
	uid  uint32
	name string
}

type identityKind uint8

const (
	anonymous identityKind = iota
	byUID
	byCertificate
	byNATSUser
)

// Identity returns who the caller is: its uid if that is known, whatever front it comes
// through, else its name there.
func (c Caller) Identity() Identity {
	uid, known := c.UID.Get()
	switch {
	case known:
		return Identity{kind: byUID, uid: uid}
	case c.Front == "grpc" && c.Name != "":
		return Identity{kind: byCertificate, name: c.Name}
	case c.Front == "nats" && c.Name != "":
		return Identity{kind: byNATSUser, name: c.Name}
	}
	return Identity{}
}

// Certificate returns the certificate's common name, where the caller has shown one.
func (i Identity) Certificate() (string, bool) { return i.name, i.kind == byCertificate }

// NATSUser returns the NATS user, where the caller is one.
func (i Identity) NATSUser() (string, bool) { return i.name, i.kind == byNATSUser }

// shownName bounds what of a name is shown.
const shownName = 128

func (i Identity) String() string {
	name := i.name
	if len(name) > shownName {
		name = name[:shownName] + "…"
	}
	switch i.kind {
	case byUID:
		return fmt.Sprintf("uid %d", i.uid)
	case byCertificate:
		return fmt.Sprintf("certificate %q", name)
	case byNATSUser:
		return fmt.Sprintf("NATS user %q", name)
	case anonymous:
	}
	return "a caller without uid or name"
}
