//go:build unix

package process

import (
	"os"
	"syscall"
)

// ResizeSignals returns the signals that report a new size of the terminal.
func ResizeSignals() []os.Signal { return []os.Signal{syscall.SIGWINCH} }
