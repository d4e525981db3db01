//go:build !linux

package proc

import "syscall"

// dieWithParent does nothing: only Linux has death signals.
func dieWithParent(*syscall.SysProcAttr) {}

// groupRuns reports whether a group has a member, including zombies. A group with guards counts as ended.
func groupRuns(pgid int, guards ...int) bool { return len(guards) == 0 && groupAlive(pgid) }

// networks returns nothing: only Linux has network namespaces.
func networks() []func(*syscall.SysProcAttr) { return nil }

func isolate(*syscall.SysProcAttr) error { return ErrNetwork }
