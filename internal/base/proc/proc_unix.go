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

// inheritsFiles says that a child can have more descriptors than three.
const inheritsFiles = true

// groupAttr puts the child at the head of a new process group. There is no
// death signal on purpose: when this program is killed a server should see the
// end of its input and clean up before the [guard] comes.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// signalGroup reports whether there was a process to signal. A group that
// holds nothing but zombies still counts.
func signalGroup(pgid int, sig syscall.Signal) bool {
	return syscall.Kill(-pgid, sig) == nil
}

// groupAlive tells whether a group has members, zombies included.
func groupAlive(pgid int) bool { return syscall.Kill(-pgid, 0) == nil }

func signalExit(state *os.ProcessState) (Exit, bool) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return Exit{}, false
	}
	return Exit{Code: 128 + int(status.Signal()), Signal: status.Signal().String()}, true
}

func executable(_ string, info fs.FileInfo) bool {
	return !info.IsDir() && info.Mode()&0o111 != 0
}

func withExtensions(path string) []string { return []string{path} }

// toForeground has the child's group take the terminal when it starts: ^C goes to
// it alone, and it may read.
func toForeground(attr *syscall.SysProcAttr, terminal *os.File) {
	attr.Foreground, attr.Ctty = true, int(terminal.Fd())
}

// takeForeground gives the terminal back to this program's group.
func takeForeground(terminal *os.File) {
	signal.Ignore(syscall.SIGTTOU) // whoever asks from the background would be stopped
	defer signal.Reset(syscall.SIGTTOU)
	// Without a terminal any more there is nothing to take.
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPGRP, syscall.Getpgrp())
}

// become replaces this process.
func become(path string, argv, env []string) error { return syscall.Exec(path, argv, env) }
