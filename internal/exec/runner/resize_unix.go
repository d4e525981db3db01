//go:build unix

package runner

import "syscall"

// resizeSignal says that the size of the terminal has changed.
const resizeSignal = syscall.SIGWINCH
