//go:build !unix

package process

import "os"

// ResizeSignals returns the signals that report a new size of the terminal. This system has none.
func ResizeSignals() []os.Signal { return nil }
