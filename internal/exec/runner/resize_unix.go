//go:build unix

package runner

import "syscall"

// resizeSignal means that the size of the terminal has changed.
const resizeSignal = syscall.SIGWINCH
