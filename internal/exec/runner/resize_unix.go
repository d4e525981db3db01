//go:build unix

package runner

import "syscall"

const resizeSignal = syscall.SIGWINCH
