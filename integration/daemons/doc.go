// Package daemons runs real daemons for tests: a private dbus-daemon, an external
// nats-server, a systemd in namespaces of its own, a ModemManager, a NetworkManager in a network
// namespace, and the command-line tools that go with them.
//
// Guarantees: a daemon ends with its test, by process id, and never outlives the test
// program; what it printed is shown when the test fails. A started daemon is ready: it
// takes connections. Restart comes back on the same address. Nothing is installed on the
// host: Go programs are built from the modules in .tools, Debian's come from PATH or else
// from the cache that "make deps" fills.
//
// Limits: methods fail the test, so they are called by the test's goroutine. A test is
// skipped only where a Debian program is neither in PATH nor in that cache, or where the
// user or the machine does not let it act as others or make namespaces and control groups;
// the reason says which. What systemd says of itself is not kept.
package daemons
