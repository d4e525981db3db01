//go:build unix

package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestGuardGoesLast: a group is killed before its guard is taken away, so that
// there is no moment in which a SIGKILL of this program would leave it behind.
func TestGuardGoesLast(t *testing.T) {
	leader := exec.Command("sleep", "301")
	leader.SysProcAttr = groupAttr()
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	dead := make(chan struct{})
	go func() { // ends with the leader
		_ = leader.Wait() // killed
		close(dead)
	}()
	input, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	shell := exec.Command("/bin/sh", "-c", groupScript)
	shell.Stdin = input
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: leader.Process.Pid}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	g := guard{shell: shell.Process, hold: hold, ended: make(chan struct{})}
	go func() { // ends with the guard
		_ = shell.Wait() // killed
		select {
		case <-dead:
		case <-time.After(2 * time.Second):
			t.Error("the guard went before its group")
		}
		close(g.ended)
	}()
	endGroup(g, leader.Process.Pid)
	<-dead
}

// TestStoppedLeavesNoGuard: what was stopped is over, as after an interrupt, though
// somebody has yet to wait for a dead member of its group.
func TestStoppedLeavesNoGuard(t *testing.T) {
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	j, err := StartJob(t.Context(), JobOptions{Command: Command{Path: "/bin/sleep", Args: []string{"301"}}, Output: output})
	if err != nil {
		t.Fatal(err)
	}
	member := exec.Command("/bin/sleep", "301")
	member.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: j.pid}
	if err := member.Start(); err != nil {
		t.Fatal(err)
	}
	j.Stop()
	_, _, left := j.Leave()
	select {
	case <-j.guard.ended:
	default:
		t.Errorf("a guard stays; told by Leave: %t", left)
		j.guard.end()
	}
	_ = member.Wait() // killed
}
