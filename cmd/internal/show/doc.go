// Package show turns the vocabulary into text for a terminal: change lines, tables and
// small plots.
//
// # Guarantees
//
//   - Pure: the same values give the same text.
//   - Names, addresses and free text that come from elsewhere pass through mihf.Escape:
//     no byte of a name can steer a terminal.
//   - No escape sequence is written; colour and cursor are the caller's business.
//   - A value that is not known is shown as "–", never as a number.
//
// # Limits
//
// Widths follow the common terminals: East Asian wide characters and pictographs take
// two cells, combining marks none.
package show
