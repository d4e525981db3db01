//go:build unix

package process

import (
	"os"
	"syscall"
)

// ResizeSignals returns the signals after which the terminal may have a new size: a resize, or a continued process.
func ResizeSignals() []os.Signal { return []os.Signal{syscall.SIGWINCH, syscall.SIGCONT} }

// Suspend stops the process group until a shell continues it.
func Suspend() error { return syscall.Kill(0, syscall.SIGTSTP) }
