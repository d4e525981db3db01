//go:build !linux

package proc

import "syscall"

// dieWithParent does nothing: only Linux has death signals.
func dieWithParent(*syscall.SysProcAttr) {}

// isGroupRunning reports whether a group has a member, including zombies. With guards it always returns false, because
// it cannot tell guards from other members.
func isGroupRunning(pgid int, guardPIDs ...int) bool {
	return len(guardPIDs) == 0 && groupHasMembers(pgid)
}

// networkNamespaceModes returns nothing: only Linux has network namespaces.
func networkNamespaceModes() []func(*syscall.SysProcAttr) { return nil }

func addNetworkAndPIDNamespaces(*syscall.SysProcAttr) error { return ErrNoNetworkNamespace }
