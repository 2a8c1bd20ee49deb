// Package modem has tests of sensors/modem against ModemManager itself, on a private bus, with
// modems of package atmodem, and against a mock of ModemManager where the real one cannot be made
// to do something.
//
// Limits: Debian's ModemManager without udev has only its generic plugin, which speaks AT: no QMI or
// MBIM, no 5G NR, no thresholds, and no network interfaces (a port is a socket). These parts
// are tested with mocks, as it is said there.
package modem
