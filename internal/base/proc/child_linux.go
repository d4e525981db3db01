package proc

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill the child, without its group, when the thread that started it exits.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = sigKill }

// isGroupRunning reports whether a group has a running member that is not one of the guards. Zombies do not count: they
// remain in containers whose first process does not reap them.
func isGroupRunning(pgid int, guardPIDs ...int) bool {
	if !groupHasMembers(pgid) {
		return false
	}
	all, err := os.ReadDir("/proc")
	if _, lookErr := os.Stat("/proc/self"); err != nil || lookErr != nil { // /proc does not exist, or it belongs to another namespace
		return true
	}
	return slices.ContainsFunc(all, func(entry os.DirEntry) bool {
		stat, _ := os.ReadFile("/proc/" + entry.Name() + "/stat") // fails if the entry is not a running process
		// The name may contain any characters. State, parent and group follow it.
		rest := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		return len(rest) > 2 && rest[2] == strconv.Itoa(pgid) && rest[0] != "Z" && rest[0] != "X" &&
			!slices.ContainsFunc(guardPIDs, func(pid int) bool { return strconv.Itoa(pid) == entry.Name() })
	})
}

// networkNamespaceModes returns the ways to give a child its own network namespace, in the order to try them: directly
// if this process is root, then with a user namespace. In both cases the child may set up the network.
func networkNamespaceModes() []func(*syscall.SysProcAttr) {
	plain := func(attr *syscall.SysProcAttr) { attr.Cloneflags |= unix.CLONE_NEWNET }
	owned := func(attr *syscall.SysProcAttr) {
		attr.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNET
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE}
	}
	if os.Geteuid() == 0 {
		return []func(*syscall.SysProcAttr){plain, owned}
	}
	return []func(*syscall.SysProcAttr){owned}
}

// addNetworkAndPIDNamespaces gives a child its own network and process namespaces. When it exits, the kernel kills all its processes.
func addNetworkAndPIDNamespaces(attr *syscall.SysProcAttr) error {
	networkNamespaceModes()[0](attr)
	attr.Cloneflags |= unix.CLONE_NEWPID
	return nil
}
