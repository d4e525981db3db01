//go:build !unix

package runner

import "syscall"

// resizeSignal is never sent on this system.
const resizeSignal = syscall.Signal(0x1c)
