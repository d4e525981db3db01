//go:build unix

package mcp

import "syscall"

// groupGone reports whether all processes of a group have ended.
func groupGone(pgid int) bool { return syscall.Kill(-pgid, 0) != nil }
