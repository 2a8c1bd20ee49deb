// Package liveview shows a broker's state in the terminal while it changes: links with
// their signal and forecast over the last minute, flows, and the last events.
//
// # Guarantees
//
//   - The terminal is as it was before when Run returns, however it ends.
//   - It is drawn at most ten times a second, and only when something has changed.
//   - Where the output is not a terminal, change lines are printed instead, without escapes.
//   - What it keeps is bounded: a minute of samples a link, and the last events.
//   - If the daemon stops answering the view says so, and goes on when it is back.
//
// # Limits
//
// It asks for the state four times a second; what comes and goes in between shows in the
// events only.
package liveview
