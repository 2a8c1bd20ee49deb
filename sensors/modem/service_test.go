package modem

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godbus/dbus/v5"

	"mihf.dev/mihf/busconn"
)

const noService = "unavailable ModemManager does not run; it is noticed when it starts"

// D04: "NameOwnerChanged: old owner gone -> links of it `unknown`, new owner -> full
// re-enumeration <= 3 s."
func TestD04ServiceRestarts(t *testing.T) {
	inConnected(t, nil, func(b *bed) {
		b.all(false)
		b.own("")
		b.want("wwan0 none unknown/0", noService)
		b.conn.opt.Signal(&dbus.Signal{Sender: ":1.7", Path: modem0, Name: modemInterface + ".StateChanged", Body: []any{int32(11), int32(3), uint32(0)}}) // a late word of the old one
		time.Sleep(time.Hour)
		b.want()
		began := time.Now()
		b.own(":1.44")
		for b.count("GetManagedObjects") < 3 && time.Since(began) < 3*time.Second {
			time.Sleep(10 * time.Millisecond)
		}
		b.settle()
		b.want("ok", "wwan0 authorised", authorised)
	})
	inConnected(t, nil, func(b *bed) { // without a gap
		b.all(false)
		b.own(":1.44")
		b.settle()
		b.want("wwan0 none unknown/0", "wwan0 authorised", authorised)
	})
}

// A modem's own link outlives ModemManager for a minute.
func TestOwnLinkWithoutService(t *testing.T) {
	inBubble(t, newManager(registered(modem0, imei)), func(o *Options) { o.NoCells = true }, func(b *bed) {
		b.want("starting", "own associated", "ok")
		b.own("")
		b.want("own none unknown/0", noService)
		time.Sleep(forgetAfter / 2)
		b.own(":1.44")
		b.settle()
		b.want("own associated", "ok")
		time.Sleep(forgetAfter)
		b.want()
		b.own("")
		time.Sleep(forgetAfter)
		b.want("own none unknown/0", noService, "own gone unknown")
	})
}

// ModemManager is not there at first.
func TestServiceStarts(t *testing.T) {
	mm := newManager(registered(modem0, imei))
	mm.owner = ""
	inBubble(t, mm, func(o *Options) { o.NoCells = true }, func(b *bed) {
		b.want("starting", noService)
		if n := b.count("GetManagedObjects"); n != 0 {
			t.Errorf("nobody was asked %d times", n)
		}
		b.change(func() { b.fail["GetManagedObjects"] = errUnknownObject }) // its objects come a little later
		b.own(":1.7")
		b.settle()
		b.change(func() { clear(b.fail) })
		time.Sleep(time.Second)
		if got := b.all(false); !slices.Equal(got[1:], []string{"own associated", "ok"}) || !strings.HasPrefix(got[0], "degraded ModemManager does not answer") {
			t.Errorf("%q", got)
		}
	})
}

// D10: "Timeout keeps the last state (`stale`), only an explicit empty owner means gone."
func TestD10BusyBus(t *testing.T) {
	inConnected(t, nil, func(b *bed) {
		b.all(false)
		b.change(func() {
			for _, member := range []string{"GetManagedObjects", "GetAll", "GetLocation", "Setup", "GetNameOwner"} {
				b.hang[member] = true
			}
		})
		time.Sleep(30 * time.Second)
		got := b.all(false)
		if len(got) != 1 || !strings.HasPrefix(got[0], "degraded ModemManager does not answer, so what is known of it is what it said last") {
			t.Errorf("%q", got)
		}
		if n := b.counter("mihf_modem_unanswered_calls_total"); n == 0 || n > 20 {
			t.Errorf("%d unanswered calls", n)
		}
		b.change(func() { clear(b.hang) })
		time.Sleep(listMost + callTimeout)
		b.want("ok")
	})
}

// D10, when it is the question for the owner that is not answered: a session that fails keeps
// the state.
func TestD10NoOwnerAnswer(t *testing.T) {
	inConnected(t, nil, func(b *bed) {
		b.all(false)
		b.change(func() { b.hang["GetNameOwner"] = true })
		b.conn.Close()
		time.Sleep(30 * time.Second)
		got := b.all(false)
		for _, s := range got {
			if !strings.HasPrefix(s, "degraded ") {
				t.Errorf("%q", got)
			}
		}
		b.change(func() { b.hang["GetNameOwner"] = false })
		time.Sleep(time.Minute)
		b.want("resync lost=true", "ok")
	})
}

// D04 and D01: "Bus loss -> reconnect with back-off, re-add matches; in-flight calls are failed, not
// replayed"; "a lost bus is reported as `bus lost`, not as a user close".
func TestD01BusLost(t *testing.T) {
	inConnected(t, nil, func(b *bed) {
		b.all(false)
		b.change(func() { b.absent = fmt.Errorf("connect: %w", errors.New("no such file")) })
		matches := b.count("AddMatch")
		b.conn.Close()
		time.Sleep(20 * time.Millisecond)
		b.want("degraded the message bus was lost, so what is known of modems is what was said last")
		time.Sleep(time.Minute)
		b.want("degraded the message bus was lost: connect: no such file")
		b.change(func() {
			b.absent, b.owner = nil, ":1.2" // a new bus with a new ModemManager
		})
		time.Sleep(30 * time.Second)
		b.want("wwan0 none unknown/0", "resync lost=true", "ok", "wwan0 authorised", authorised)
		if n := b.count("AddMatch") - matches; n != 2 {
			t.Errorf("%d matches were added", n)
		}
	})
}

// Without a bus the sensor is unavailable, and looks again each minute.
func TestNoBus(t *testing.T) {
	mm := newManager(registered(modem0, imei))
	mm.absent = fmt.Errorf("%w: there is no system bus", busconn.ErrNoBus)
	inBubble(t, mm, func(o *Options) { o.NoCells = true }, func(b *bed) {
		b.want("starting", "unavailable no message bus, so no ModemManager: not available: no such bus: there is no system bus")
		b.change(func() { b.absent = nil })
		time.Sleep(time.Minute)
		b.settle()
		b.want("own associated", "ok")
	})
}

// D09: "UnknownObject/UnknownMethod/UnknownInterface = removal of that object only."
func TestD09ObjectVanishes(t *testing.T) {
	inConnected(t, func(mm *manager) {
		m := mm.objects[modem0][modemInterface]
		m["Bearers"] = dbus.MakeVariant([]dbus.ObjectPath{bearer0, "/org/freedesktop/ModemManager1/Bearer/1"}) // the second is not there
		mm.plug(registered(modem1, imei+"1"))
		mm.fail["GetLocation"] = errUnknownObject
		mm.fail["Setup"] = dbus.Error{Name: "org.freedesktop.DBus.Error.UnknownMethod"}
	}, func(b *bed) {
		time.Sleep(time.Minute)
		got := b.all(false)
		if !slices.Contains(got, "wwan0 authorised") || strings.Contains(strings.Join(got, "\n"), "gone") {
			t.Errorf("%q", got)
		}
		if n := b.count("GetAll"); n > 4 {
			t.Errorf("bearers were read %d times", n)
		}
	})
}

// D02: "Sequential signal handler + bounded own queue; StateChanged order preserved in a test with
// 10k signals."
func TestD02SignalStorm(t *testing.T) {
	inConnected(t, func(mm *manager) { mm.cells[modem0] = "" }, func(b *bed) {
		b.all(false)
		const storm = 10_000
		for n := range storm {
			state := int32(stateRegistered)
			if n%2 == 1 {
				state = stateConnected
			}
			b.emit(modem0, modemInterface+".StateChanged", int32(0), state, uint32(n))
			if n%500 == 499 {
				time.Sleep(time.Millisecond) // the sensor takes them
			}
		}
		time.Sleep(10 * time.Millisecond)
		last := -1
		for _, s := range b.all(false) {
			var n int
			if _, err := fmt.Sscanf(s, "wwan0 disconnected  unknown/%d", &n); err != nil {
				continue
			}
			if n <= last {
				t.Fatalf("%d came after %d", n, last)
			}
			last = n
		}
		if last < storm-2 || b.counter("mihf_modem_overflows_total") != 0 {
			t.Errorf("the last was %d, %d overflows", last, b.counter("mihf_modem_overflows_total"))
		}
	})
}

// What is too much for the queue is counted, and all is read again.
func TestOverflow(t *testing.T) {
	mm := newManager()
	connected(modem0, mm)
	var hold chan struct{}
	var held atomic.Bool
	inBubble(t, mm, func(o *Options) {
		hold = make(chan struct{})           // of the bubble
		o.Suspended = func() time.Duration { // the loop asks this in each turn
			if held.Load() {
				<-hold
			}
			return 0
		}
	}, func(b *bed) {
		b.all(false)
		held.Store(true)
		b.emit(modem0, modemInterface+".StateChanged", int32(0), int32(stateConnected), uint32(0))
		synctest.Wait()
		for n := range 3 * maxWaiting {
			b.emit(modem0, modemInterface+".StateChanged", int32(0), int32(stateConnected), uint32(n))
		}
		b.change(func() { b.objects[modem0][modemInterface]["State"] = dbus.MakeVariant(int32(stateRegistered)) })
		held.Store(false)
		close(hold)
		b.settle()
		b.want("wwan0 disconnected "+atCell+"unknown/0", "wwan0 associated "+string(cellA), "resync lost=true")
		if n := b.counter("mihf_modem_overflows_total"); n != 1 {
			t.Errorf("%d overflows", n)
		}
	})
}

// D03: "All calls ... <= 2 s; limit of parallel calls per destination."
func TestD03CallsEnd(t *testing.T) {
	mm := newManager()
	for n := range maxModems {
		mm.plug(registered("/org/freedesktop/ModemManager1/Modem/"+dbus.ObjectPath(rune('a'+n)), imei+string(rune('a'+n))))
	}
	mm.hang["Setup"], mm.hang["GetLocation"] = true, true
	inBubble(t, mm, nil, func(b *bed) {
		if n := b.count("Setup") + b.count("GetLocation"); n != maxParallel {
			t.Errorf("%d calls are under way, want %d", n, maxParallel)
		}
		time.Sleep(callTimeout)
		b.settle()
		if n := b.counter("mihf_modem_unanswered_calls_total"); n != maxParallel {
			t.Errorf("%d calls were given up", n)
		}
	})
}

// M13: "Own thin client: per-call timeout <= 2 s, checked assertions, one bad modem never hides the
// others."
func TestM13BadModem(t *testing.T) {
	bad := registered(modem0, "1").set(modemInterface, "State", "connected").set(modemInterface, "SignalQuality", uint32(7)).
		set(modemInterface, "Bearers", "none").set(signalInterface, "Lte", dict{"rsrp": dbus.MakeVariant("-90")})
	mm := newManager(bad, registered(modem1, imei))
	inBubble(t, mm, func(o *Options) { o.NoCells = true }, func(b *bed) {
		b.names[own] = "good"
		if got := b.all(false); !slices.Contains(got, "good associated") {
			t.Errorf("%q", got)
		}
		if n := b.counter("mihf_modem_malformed_messages_total"); n == 0 {
			t.Error("nothing was counted")
		}
		b.Log("# signals that make no sense, and such of others")
		before := b.counter("mihf_modem_malformed_messages_total")
		b.emit(modem1, modemInterface+".StateChanged", "connected")
		b.emit(rootPath, objectManager+".InterfacesAdded")
		b.emit(rootPath, objectManager+".InterfacesRemoved", uint32(1))
		b.emit(modem1, properties+".PropertiesChanged")
		b.conn.deliver(&dbus.Signal{Sender: busName, Name: busName + ".NameOwnerChanged", Body: []any{service}})
		if n := b.counter("mihf_modem_malformed_messages_total") - before; n != 5 {
			t.Errorf("%d of 5 were counted", n)
		}
		b.conn.deliver(&dbus.Signal{Sender: ":1.666", Path: rootPath, Name: objectManager + ".InterfacesRemoved", Body: []any{modem1, []string{modemInterface}}})
		b.conn.opt.Signal(&dbus.Signal{Sender: ":1.666", Path: rootPath, Name: objectManager + ".InterfacesRemoved", Body: []any{modem1, []string{modemInterface}}})
		b.settle()
		b.want()
	})
}

// After a suspend all is looked at again.
func TestResume(t *testing.T) {
	mm := newManager(registered(modem0, imei))
	var suspended atomic.Int64
	inBubble(t, mm, func(o *Options) {
		o.NoCells = true
		o.Suspended = func() time.Duration { return time.Duration(suspended.Load()) }
	}, func(b *bed) {
		b.all(false)
		suspended.Store(int64(time.Hour))
		time.Sleep(reconcile)
		b.settle()
		b.want("resync lost=false")
	})
}
