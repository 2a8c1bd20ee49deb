package dbusfront

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf"
	"mihf.dev/proto/dbusapi"
)

// settle is how long the state rests between two readings for properties, and look how long
// at most: some of it changes without an event. A reading waits for calm, so that signals and
// hints of the same moment go first.
const (
	settle = 100 * time.Millisecond
	look   = time.Second
	calm   = 10 * time.Millisecond
)

// mirror tells what changed of objects and properties. An event or a hint is only a reason
// to look: what is told is the difference of two readings. It ends with the connection or
// the broker.
func (b *bus) mirror() {
	known := objects{}
	timer := time.NewTicker(look)
	defer timer.Stop()
	for {
		select {
		case <-b.dirty:
		case <-timer.C:
		case <-b.ctx.Done():
			return
		}
		sleep(b.ctx, calm)
		b.registrants.look()
		snap, err := b.s.o.Broker.Snapshot(b.ctx, b.s.o.Self)
		switch {
		case err == nil:
			now := objectsOf(snap)
			b.tell(known, now)
			b.registrants.prune(now)
			known = now
		case errors.Is(err, mihf.ErrClosed) || b.ctx.Err() != nil:
			return
		default:
			b.s.log.Warn("properties are not up to date", "error", err)
		}
		sleep(b.ctx, settle)
	}
}

// tell sends the differences, in the order of the paths.
func (b *bus) tell(old, now objects) {
	for _, path := range slices.Sorted(maps.Keys(old)) {
		if now[path] == nil {
			b.tellOf(path, dbusapi.Root, dbusapi.ObjectManager, "InterfacesRemoved", path, slices.Sorted(maps.Keys(old[path])))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if old[path] == nil {
			b.tellOf(path, dbusapi.Root, dbusapi.ObjectManager, "InterfacesAdded", path, now[path])
			continue
		}
		for iface, p := range now[path] {
			changed, invalidated := properties(p).difference(old[path][iface])
			if len(changed)+len(invalidated) > 0 {
				b.tellOf(path, path, dbusapi.Properties, "PropertiesChanged", iface, changed, invalidated)
			}
		}
	}
}

// tellOf sends a signal about an object to who may see it: a link to all, a flow to the
// connection that registered it.
func (b *bus) tellOf(about, from dbus.ObjectPath, iface, member string, args ...any) {
	dest := ""
	if flow, ok := dbusapi.ParseFlowPath(about); ok {
		if dest = b.registrants.name(flow); dest == "" {
			return
		}
	} else if !b.s.o.Public() {
		return
	}
	_ = b.emit(b.ctx, dest, from, iface, member, these(args...)) // an error: the connection has ended
}
