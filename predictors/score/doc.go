// Package score judges prediction methods on recordings whose losses and handovers are
// known: alarms by horizon, hits, false and late alarms, lead times, and whether
// probabilities mean what they say.
//
// # The accounting
//
// What is judged is the time from 0 to the last line, less the blind intervals. An alarm
// at a with horizon H is a hit if an event comes in [a + 0.1 s, a + H], late if it comes
// sooner, else false. While an alarm is pending no other counts; an alarm that still
// stands at a + H counts again then. After each event the count starts afresh. An alarm
// that is pending when judging stops counts as nothing; the event that ends a judged
// interval may come up to 1.5 s after it. Precision is hits / (hits + false alarms),
// recall is events hit / events.
//
// A method that says nothing at a moment raises no alarm then, and counts as having said 0.
//
// # Guarantees
//
//   - A predictor sees each observation at its time and no truth; nothing looks ahead.
//   - It is asked after each observation, and every [Step] between.
//   - The same traces and method give the same figures.
//
// # Limits
//
// A trace records one kind of event. Where only losses are known, only the incidence of
// losses is judged; where handovers are, the sum of both, because either ends the
// attachment. See [Judged].
package score

import "time"

// Step is how often a predictor is asked between observations.
const Step = 100 * time.Millisecond

// MinLead is how long before its event an alarm must come to count as a hit, in seconds.
const MinLead = 0.1

// endLag is how long after a judged interval the event that ends it may come, in seconds.
const endLag = 1.5
