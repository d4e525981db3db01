//go:build unix

package proc

import (
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	sigTerm = syscall.SIGTERM
	sigKill = syscall.SIGKILL
)

// Shell runs command lines of hooks and helpers.
const Shell = "/bin/sh"

// canChildInheritExtraFiles means that a child can inherit more than three descriptors.
const canChildInheritExtraFiles = true

// newProcessGroupAttr makes the child the leader of a new process group. The child deliberately gets no death signal: if this program is
// killed, a server should notice EOF and clean up. The [exitCleanupGuard] kills a server that is still running later.
func newProcessGroupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// signalProcessGroup sends a signal to a group and reports whether the group had a process, including zombies.
func signalProcessGroup(pgid int, sig syscall.Signal) (wasDelivered bool) {
	return syscall.Kill(-pgid, sig) == nil
}

// groupHasMembers reports whether a group has members, including zombies.
func groupHasMembers(pgid int) bool { return syscall.Kill(-pgid, 0) == nil }

func exitStatusOfSignal(state *os.ProcessState) (ExitStatus, bool) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return ExitStatus{}, false
	}
	return ExitStatus{Code: 128 + int(status.Signal()), Signal: status.Signal().String()}, true
}

func isExecutableFile(_ string, info fs.FileInfo) bool {
	return !info.IsDir() && info.Mode()&0o111 != 0
}

func executablePathCandidates(path string) []string { return []string{path} }

// setForegroundOnStart makes the child's group the foreground group of the terminal when the child starts. Only the
// foreground group gets the signal of ^C and may read from the terminal.
func setForegroundOnStart(attr *syscall.SysProcAttr, terminal *os.File) {
	attr.Foreground, attr.Ctty = true, int(terminal.Fd())
}

// setStdinAsControllingTerminal makes the child a session and group leader whose controlling terminal is its standard input.
func setStdinAsControllingTerminal(attr *syscall.SysProcAttr) {
	attr.Setpgid, attr.Setsid, attr.Setctty, attr.Ctty = false, true, true, 0
}

// takeForeground makes this program's group the foreground group again.
func takeForeground(terminal *os.File) {
	signal.Ignore(syscall.SIGTTOU) // otherwise a background process would be stopped by this call
	defer signal.Reset(syscall.SIGTTOU)
	// The call fails harmlessly if the terminal is already closed.
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPGRP, syscall.Getpgrp())
}

func replaceProcess(path string, argv, env []string) error { return syscall.Exec(path, argv, env) }
