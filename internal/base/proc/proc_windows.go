package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	sigTerm = syscall.SIGTERM
	sigKill = syscall.SIGKILL
)

// Shell is the shell that runs command lines of hooks and helpers. On Windows it comes with Git and must be on PATH.
const Shell = "sh"

const canChildInheritExtraFiles = false

func newProcessGroupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// signalProcessGroup ends only the process: Windows has no group signals.
func signalProcessGroup(pid int, _ syscall.Signal) (wasDelivered bool) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }() // the handle is no longer needed
	return p.Kill() == nil
}

// groupHasMembers returns false: Windows has no process groups.
func groupHasMembers(int) bool { return false }

func exitStatusOfSignal(*os.ProcessState) (ExitStatus, bool) { return ExitStatus{}, false }

func isExecutableFile(path string, info fs.FileInfo) bool {
	return !info.IsDir() && filepath.Ext(path) != ""
}

func executablePathCandidates(path string) []string {
	if filepath.Ext(path) != "" {
		return []string{path}
	}
	var all []string
	for _, ext := range strings.Fields(".exe .cmd .bat .com") {
		all = append(all, path+ext)
	}
	return all
}

// exitCleanupGuard does nothing on Windows.
type exitCleanupGuard struct{}

func startExitCleanupGuard(int, string, ...string) exitCleanupGuard { return exitCleanupGuard{} }

func (exitCleanupGuard) stopWithoutCleanup() {}

func (exitCleanupGuard) guardProcessIDs() []int { return nil }

// setForegroundOnStart does nothing: Windows terminals have no foreground group.
func setForegroundOnStart(*syscall.SysProcAttr, *os.File) {}

func takeForeground(*os.File) {}

// setStdinAsControllingTerminal does nothing: Windows has no sessions.
func setStdinAsControllingTerminal(*syscall.SysProcAttr) {}

// replaceProcess is not supported: a Windows process cannot be replaced.
func replaceProcess(string, []string, []string) error { return errors.ErrUnsupported }
