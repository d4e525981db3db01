//go:build !linux

package proc

import "syscall"

// dieWithParent does nothing: only Linux has death signals.
func dieWithParent(*syscall.SysProcAttr) {}
