//go:build unix

package proc

import (
	"os"
	"os/exec"
	"syscall"
)

// exitCleanupGuard is a shell process that cleans up if this program is killed. The zero guard does nothing.
type exitCleanupGuard struct {
	shell *os.Process
	input *os.File // input of the shell; the kernel closes it when this program exits
	ended chan struct{}
}

// startExitCleanupGuard starts a guard in the group pgid, or in a new group if pgid is 0. If no shell can be started, it
// returns the zero guard. Then nothing is cleaned up if this program is killed.
func startExitCleanupGuard(pgid int, script string, args ...string) exitCleanupGuard {
	input, hold, err := os.Pipe()
	if err != nil {
		return exitCleanupGuard{}
	}
	defer input.Close()
	cmd := exec.Cmd{
		Path: "/bin/sh", Args: append([]string{"sh", "-c", script, "sh"}, args...),
		Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Stdin: input,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pgid: pgid},
	}
	if err := cmd.Start(); err != nil {
		hold.Close()
		return exitCleanupGuard{}
	}
	g := exitCleanupGuard{shell: cmd.Process, input: hold, ended: make(chan struct{})}
	go func() { // returns when the shell exits, on its own or because of a signal to the group
		_ = cmd.Wait() // the exit status of a guard is irrelevant
		close(g.ended)
	}()
	return g
}

func (g exitCleanupGuard) stopWithoutCleanup() {
	if g.shell == nil {
		return
	}
	_ = g.shell.Kill() // the shell may have exited with its group
	<-g.ended
	g.input.Close()
}

func (g exitCleanupGuard) guardProcessIDs() []int {
	if g.shell == nil {
		return nil
	}
	return []int{g.shell.Pid}
}
