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

// Shell runs command lines of hooks and helpers: the one of Git for Windows, if it is on PATH.
const Shell = "sh"

// inheritsFiles says that a child can have more descriptors than three.
const inheritsFiles = false

func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// signalGroup ends the one process: groups cannot be signalled here.
func signalGroup(pid int, _ syscall.Signal) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }() // nothing is left to do with the handle
	return p.Kill() == nil
}

// groupAlive is false: there are no groups here.
func groupAlive(int) bool { return false }

func signalExit(*os.ProcessState) (Exit, bool) { return Exit{}, false }

func executable(path string, info fs.FileInfo) bool {
	return !info.IsDir() && filepath.Ext(path) != ""
}

func withExtensions(path string) []string {
	if filepath.Ext(path) != "" {
		return []string{path}
	}
	var all []string
	for _, ext := range strings.Fields(".exe .cmd .bat .com") {
		all = append(all, path+ext)
	}
	return all
}

// guard stands for what remains when this program is killed: nothing.
type guard struct{}

func watch(int) guard { return guard{} }

func watchOver(int) guard { return guard{} }

func watchDir(string) guard { return guard{} }

func watchRun(string, string) guard { return guard{} }

func (guard) end() {}

func (guard) own() []int { return nil }

// Terminals have no foreground here.
func toForeground(*syscall.SysProcAttr, *os.File) {}

func takeForeground(*os.File) {}

// become does nothing: a process of Windows stays what it is.
func become(string, []string, []string) error { return errors.ErrUnsupported }
