package config

import _ "embed"

//go:embed mihfd.toml
var sample string

// Sample returns a commented configuration with every key at its default. Comments begin
// with "# "; a "#" before a key alone switches it off.
func Sample() string { return sample }
