//go:build unix

package proc

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// The scripts of guards wait for EOF on their input. Nothing is written to the input, so EOF means that this program
// has exited. Then killGroupScript stops the guard's own group, and killOtherGroupScript stops the group $1. Both take
// the same steps as [Process.Stop]. removeDirScript removes the directory $1. cleanUpRunScript stops all processes with
// the variable $2 in their environment (Linux), and removes the directory $1.
const (
	killGroupScript      = `read -r _; sleep 0.5; trap "" TERM; kill -TERM 0; sleep 0.5; kill -KILL 0`
	killOtherGroupScript = `read -r _; sleep 0.5; kill -s TERM -- "-$1"; sleep 0.5; kill -s KILL -- "-$1"`
	removeDirScript      = `read -r _; rm -rf -- "$1"`
	cleanUpRunScript     = `read -r _; for s in TERM KILL; do
for e in /proc/[0-9]*/environ; do grep -qsF -- "$2" "$e" && p=${e#/proc/} && kill -s $s "${p%/environ}"; done
test $s = KILL || sleep 0.5; done 2>/dev/null; rm -rf -- "$1"`
)

// guard is a shell process that cleans up if this program is killed. The zero guard does nothing.
type guard struct {
	shell *os.Process
	input *os.File // input of the shell; the kernel closes it when this program exits
	ended chan struct{}
}

// startGuard starts a guard as a member of the group pgid. While the guard runs, the group id cannot be reused. The
// group must still exist: its leader was not waited for yet, or another member is running.
func startGuard(pgid int) guard { return newGuard(pgid, killGroupScript) }

// startExternalGuard starts a guard of the group pgid that is in another group, so that it does not count as a process
// of the group pgid. The guard does not prevent the group id from being reused. Therefore it must end shortly after the
// leader was waited for.
func startExternalGuard(pgid int) guard { return newGuard(0, killOtherGroupScript, strconv.Itoa(pgid)) }

func startDirGuard(dir string) guard { return newGuard(0, removeDirScript, dir) }

// startRunGuard starts a guard. When this program exits, the guard removes dir and ends all processes with the variable
// (K=V) in their environment, including those that left the group of the run.
func startRunGuard(dir, variable string) guard { return newGuard(0, cleanUpRunScript, dir, variable) }

// newGuard starts a guard in the group pgid, or in a new group if pgid is 0. If no shell can be started, it returns the
// zero guard. Then nothing is cleaned up if this program is killed.
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
	g := guard{shell: cmd.Process, input: hold, ended: make(chan struct{})}
	go func() { // returns when the shell exits, because of end or a signal to the group
		_ = cmd.Wait() // the exit status of a guard is irrelevant
		close(g.ended)
	}()
	return g
}

func (g guard) end() {
	if g.shell == nil {
		return
	}
	_ = g.shell.Kill() // the shell may have exited with its group
	<-g.ended
	g.input.Close()
}

func (g guard) pids() []int {
	if g.shell == nil {
		return nil
	}
	return []int{g.shell.Pid}
}
