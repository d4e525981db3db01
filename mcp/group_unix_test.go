//go:build unix

package mcp

import "syscall"

// groupGone tells whether nothing of a process group is left.
func groupGone(pgid int) bool { return syscall.Kill(-pgid, 0) != nil }
