//go:build !linux

package proc

import "syscall"

// dieWithParent does nothing: only Linux has death signals.
func dieWithParent(*syscall.SysProcAttr) {}

// groupRuns reports whether a group has a member, including zombies.
func groupRuns(pgid int) bool { return groupAlive(pgid) }

// networks returns nothing: only Linux has network namespaces.
func networks() []func(*syscall.SysProcAttr) { return nil }

func isolate(*syscall.SysProcAttr) error { return ErrNetwork }
