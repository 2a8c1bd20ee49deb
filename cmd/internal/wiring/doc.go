// Package wiring joins the parts of the daemon: configuration, broker, predictor, sensors
// and fronts. mihfd uses all of it; the demonstration puts its own sensors and clock in
// their place.
//
// # Guarantees
//
//   - Every value of the configuration reaches the part that it is for, and the defaults of
//     both are equal.
//   - [Assemble] starts nothing. What it opened is closed by the tasks when they end, or by
//     itself where it fails.
//   - A sensor's task is ready when the sensor's condition is known, whatever it is:
//     hardware that is absent doesn't hold the daemon up.
package wiring
