// Package atmodem is a mobile modem for tests: it answers AT commands (3GPP TS 27.007 and V.250)
// on unix sockets, as far as ModemManager's generic plugin asks them, and does what a test tells
// it: a network comes and goes, the signal changes, the SIM is taken out, a session is dropped.
//
// # Guarantees
//
//   - What the test sets is what the next answer says, and what a subscribed unsolicited line
//     (+CREG, +CGREG, +CEREG, +CIEV) says at once.
//   - A dialled port is in data mode until the session ends; what comes in is [Config.Data]'s, and
//     other ports go on answering.
//   - Every command line gets one final result. What is not known is ERROR.
//   - [Modem.Commands] has what was asked, newest last, and is bounded.
//
// # Limits
//
//   - One session at a time, no voice, no messages, no network scan, one operator.
//   - A port that nobody reads holds up who writes to it.
//   - With one port only, ModemManager cannot poll the signal while a session is up: give two.
//
// The interpreter is pure (state.go, commands.go); [Modem] is its shell, and any goroutine may
// use it.
package atmodem
