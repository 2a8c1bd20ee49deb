// Package front is the conformance suite of the broker's fronts: the same tests run over
// each, on a real broker. A front that passes delivers the same events and hints, field by
// field, under the same contract.
//
// A front joins by a [Front]: a name, and how to serve a broker and connect to it.
package front
