// Package parity carries the list of known differences between the double and the real CLI, so that the installed
// binary contains it.
package parity

import _ "embed"

// Known is the text of known.toml.
//
//go:embed known.toml
var Known []byte // constant: only read
