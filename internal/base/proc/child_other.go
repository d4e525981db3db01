//go:build !linux

package proc

import "syscall"

// dieWithParent does nothing: only Linux has death signals.
func dieWithParent(*syscall.SysProcAttr) {}

// groupRuns tells whether a group has a member, be it one that nobody waits for.
func groupRuns(pgid int) bool { return groupAlive(pgid) }

// networks are none: only Linux gives a process a network of its own.
func networks() []func(*syscall.SysProcAttr) { return nil }

func isolate(*syscall.SysProcAttr) error { return ErrNetwork }
