//go:build unix

package proc

import (
	"os"
	"os/exec"
	"syscall"
)

// guardScript waits for the end of its input, which nobody writes to: it
// comes when this program is gone. Then it gives the group the same steps as
// [Process.Stop] and goes with it.
const guardScript = `read -r _; sleep 0.5; trap "" TERM; kill -TERM 0; sleep 0.5; kill -KILL 0`

// guard is a shell in a child's group that ends the group when this program
// is killed and cannot do it any more. Being a member it keeps the group's id
// from being given to others. The zero guard guards nothing.
type guard struct {
	shell *os.Process
	hold  *os.File // its input; the system closes it with this program
	ended chan struct{}
}

// watch starts a guard for a group whose leader was not waited for yet. A
// system without a shell gets none: it only matters after a SIGKILL.
func watch(pgid int) guard {
	input, hold, err := os.Pipe()
	if err != nil {
		return guard{}
	}
	defer input.Close()
	cmd := exec.Cmd{
		Path: "/bin/sh", Args: []string{"sh", "-c", guardScript},
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
