//go:build !unix

package process

import "os"

// ResizeSignals returns the signals that report a new size of the terminal. This system has none.
func ResizeSignals() []os.Signal { return nil }

// Suspend does nothing: this system has no job control.
func Suspend() error { return nil }
