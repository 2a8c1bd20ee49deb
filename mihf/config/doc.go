// Package config reads the daemon's configuration: strict TOML, checked value by value.
//
// # Guarantees
//
//   - A key that is not known, a value of the wrong type and one outside its bounds are
//     errors. Each error is an [Error] with file, line, key and what to do; all that can be
//     found in one reading are reported together, as [Errors].
//   - A key that is not given has the value of [Defaults]; an empty file is right.
//   - The [Sample] has every key with its default.
//   - What [Parse] returns holds every relation between values that the core relies on.
//
// # Limits
//
// Files that a configuration names (certificates, keys) are not opened here, nor is a
// group looked up: that is done when they are used. This package knows no other part of
// the daemon; what a section means there is said by cmd/internal/wiring.
package config
