// Package dbusfront serves the broker on a D-Bus message bus: objects with properties for
// links and flows, signals for events, unicast signals for hints, methods for all the rest.
// The interface is that of package dbusapi, the marshalling that of package variant.
//
// # Guarantees
//
//   - A bus that is not there, is lost, refuses the name or stands still ends nothing. The
//     front says so (see [Server.Condition]), tries again, and has name, objects and signals
//     back within 3 s of the bus's return.
//   - The broker never waits for the bus: each reader of a feed does, and is closed as slow
//     like any other. What is written and not yet taken is bounded by package busconn, and
//     what the kernel keeps by [sendBuffer]: a hint waits for a few signals at most.
//   - The calls of one sender are done one after another, in its order. How many wait, of one
//     user and of all, is bounded; one more is refused by name (LimitsExceeded). While they
//     wait they are not decoded, and only [maxAtOnce] are done at once. A user's connections
//     are bounded, too.
//   - The bus says who a sender is. It is asked once for each connection, and what it said is
//     forgotten with the connection.
//   - Registrations, subscriptions and recordings belong to the connection that made them and
//     end with it.
//   - An event's signal names the event before it on its link, so that a listener sees a loss.
//     A hint goes to the connection that registered its flow and to nobody else.
//   - The answer to a registration comes before the flow's first hint.
//   - Signals that everybody sees are sent only while everybody has the role to see.
//   - A call with arguments of another type, or a dictionary that makes no sense, is refused
//     with what is wrong, and counted. A panic in a call ends that call only.
//
// # Limits
//
// Properties follow an event within [settle], and what changes without one within [look]. A flow's changes are told to the
// connection that registered it over D-Bus; flows of other fronts are only listed. What the
// kernel's socket buffer took before a bus stood still arrives when it goes on, with the age
// that it had.
//
// Shell: one connection, read by one goroutine that never waits; one goroutine each for the
// broadcast, for the properties, for a sender that has calls to do, a stream, an attachment.
package dbusfront
