// Package endtoend tests the built daemon on a real kernel: mihfd runs as a process in a
// network namespace that the test made, and everything is asserted through a gRPC client.
//
// Guarantees: nothing outside the namespaces is touched; the daemon ends with its test.
//
// Limits: waits are bounded by a deadline that only a failure reaches; but for the lease of
// a flow whose daemon was killed, no latency is asserted here.
package endtoend
