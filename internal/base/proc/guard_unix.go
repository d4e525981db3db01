//go:build unix

package proc

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// The scripts of guards wait for the end of their input, which nobody writes
// to: it comes when this program is gone. That of a group, inside or outside of
// it, then gives the group the same steps as [Process.Stop]; that of a directory
// removes it.
const (
	groupScript   = `read -r _; sleep 0.5; trap "" TERM; kill -TERM 0; sleep 0.5; kill -KILL 0`
	outsideScript = `read -r _; sleep 0.5; kill -s TERM -- "-$1"; sleep 0.5; kill -s KILL -- "-$1"`
	dirScript     = `read -r _; rm -rf -- "$1"`
	runScript     = `read -r _; for s in TERM KILL; do
for e in /proc/[0-9]*/environ; do grep -qsF -- "$2" "$e" && p=${e#/proc/} && kill -s $s "${p%/environ}"; done
test $s = KILL || sleep 0.5; done 2>/dev/null; rm -rf -- "$1"`
)

// guard is a shell that does what is left to do when this program is killed
// and cannot do it any more. The zero guard guards nothing.
type guard struct {
	shell *os.Process
	hold  *os.File // its input; the system closes it with this program
	ended chan struct{}
}

// watch starts a guard in a group whose leader was not waited for yet. Being a
// member it keeps the group's id from being given to others.
func watch(pgid int) guard { return newGuard(pgid, groupScript) }

// watchOver starts a guard of a group that is no member of it, so that what is
// left of the group shows. It is for as long as the leader was not waited for,
// and a moment longer.
func watchOver(pgid int) guard { return newGuard(0, outsideScript, strconv.Itoa(pgid)) }

// watchDir starts a guard of a directory, in a group of its own.
func watchDir(dir string) guard { return newGuard(0, dirScript, dir) }

// watchRun starts a guard of a directory and of the processes that have a variable, K=V,
// in their environment: also of those that have left the group of the run.
func watchRun(dir, variable string) guard { return newGuard(0, runScript, dir, variable) }

// newGuard starts a guard in a group; 0 = a new one. A system without a shell
// gets none: it only matters after a SIGKILL.
func newGuard(pgid int, script string, args ...string) guard {
	input, hold, err := os.Pipe()
	if err != nil {
		return guard{}
	}
	defer input.Close()
	cmd := exec.Cmd{
		Path: "/bin/sh", Args: append([]string{"sh", "-c", script, "sh"}, args...),
		Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Stdin: input,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pgid: pgid},
	}
	if err := cmd.Start(); err != nil {
		hold.Close()
		return guard{}
	}
	g := guard{shell: cmd.Process, hold: hold, ended: make(chan struct{})}
	go func() { // ends with the shell, which end or a signal to the group ends
		_ = cmd.Wait() // how a guard ends tells nothing
		close(g.ended)
	}()
	return g
}

// end takes the guard away and returns when it is gone.
func (g guard) end() {
	if g.shell == nil {
		return
	}
	_ = g.shell.Kill() // it may have ended with its group
	<-g.ended
	g.hold.Close()
}

// own is the process of the guard, if there is one.
func (g guard) own() []int {
	if g.shell == nil {
		return nil
	}
	return []int{g.shell.Pid}
}
