// Package attach joins a transport to a broker as a flow: any value that tells its RTT and
// can freeze, thaw and take link characteristics.
//
// # Guarantees
//
//   - Every Freeze is followed by exactly one Unfreeze, whatever becomes of the broker, the
//     connection or this process's part in it: a flow is never frozen longer than the lease
//     after the newest hint that renewed it. What lapses is thawed to recovery.
//   - Hints are applied in the order of their epochs, each once; older ones are answered
//     as late, and so is a Freeze that is older on arrival than its lease.
//   - Every hint is acknowledged.
//   - A lost connection is dialled again and the flow registered under the same id. A
//     freeze outlives it until its lease ends; one of an earlier run of the broker ends at
//     once, to recovery.
//   - The transport's methods are called one at a time.
//
// # Limits
//
// The transport's methods must return at once: a method that blocks holds up the lease. A
// lease that lapses is shown to the transport as an Unfreeze with cause "expired" and
// Recovery set. Go's timers stand still while the machine is suspended: a lease that
// ended then is ended at resume.
package attach
