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

// dieWithParent has the system kill the child itself, not its group, when the
// thread that starts it ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = sigKill }

// groupRuns tells whether a group has a member that still runs. The dead that nobody
// waits for, as the first process of many a container does not, are none.
func groupRuns(pgid int) bool {
	if !groupAlive(pgid) {
		return false
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	return slices.ContainsFunc(all, func(entry os.DirEntry) bool {
		stat, _ := os.ReadFile("/proc/" + entry.Name() + "/stat") // what is no process has none, and it may have ended
		// Behind the name, which may hold anything: state, parent, group.
		rest := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		return len(rest) > 2 && rest[2] == strconv.Itoa(pgid) && rest[0] != "Z" && rest[0] != "X"
	})
}

// networks are the ways to give a child a network of its own, to be tried one
// after the other: with the rights of the superuser, and with those that anybody
// has over what is his alone. The child has the rights it needs to set it up.
func networks() []func(*syscall.SysProcAttr) {
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

// isolate gives a child a network of its own, and a process namespace: all that it
// starts ends with it.
func isolate(attr *syscall.SysProcAttr) error {
	networks()[0](attr)
	attr.Cloneflags |= unix.CLONE_NEWPID
	return nil
}
