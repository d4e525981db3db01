//go:build unix

package proc

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestGuardGoesLast checks that a group is killed before its guard, so that a SIGKILL of this program never leaves the
// group running.
func TestGuardGoesLast(t *testing.T) {
	leader := exec.Command("sleep", "301")
	leader.SysProcAttr = newProcessGroupAttr()
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	dead := make(chan struct{})
	go func() { // returns when the leader exits
		_ = leader.Wait() // killed
		close(dead)
	}()
	input, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	shell := exec.Command("/bin/sh", "-c", killGroupScript)
	shell.Stdin = input
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: leader.Process.Pid}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	g := exitCleanupGuard{shell: shell.Process, input: hold, ended: make(chan struct{})}
	go func() { // returns when the guard exits
		_ = shell.Wait() // killed
		select {
		case <-dead:
		case <-time.After(2 * time.Second):
			t.Error("the guard went before its group")
		}
		close(g.ended)
	}()
	killGroupAndEndGuard(g, leader.Process.Pid)
	<-dead
}

// TestExternalGuard: the guard outside of a group ends the group when this program exits.
func TestExternalGuard(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	leader := exec.CommandContext(ctx, "sleep", "301")
	leader.SysProcAttr = newProcessGroupAttr()
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	g := startKillGuardOutsideGroup(leader.Process.Pid)
	if err := g.input.Close(); err != nil { // as the kernel does at the exit of this program
		t.Fatal(err)
	}
	_ = leader.Wait() // ended by the guard
	if status, ok := leader.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGTERM {
		t.Errorf("the group ended with %v, not by SIGTERM of its guard", leader.ProcessState)
	}
	<-g.ended
}

// TestStoppedLeavesNoGuard: a stopped group has ended, as after an interrupt, even if a dead member was not waited
// for yet.
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
	j.TerminateAndWait()
	_, _, left := j.WaitExit()
	select {
	case <-j.guard.ended:
	default:
		t.Errorf("a guard stays; told by Leave: %t", left)
		j.guard.stopWithoutCleanup()
	}
	_ = member.Wait() // killed
}

// TestLeftOver: processes that a command leaves in the background are guarded until they have exited.
func TestLeftOver(t *testing.T) {
	dir := t.TempDir()
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	j, err := StartJob(t.Context(), JobOptions{
		Command: Command{Path: "/bin/sh", Args: []string{"-c", "mkfifo go; { read -r x <go; } &"}, Dir: dir},
		Output:  output,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, left := j.WaitExit(); !left {
		t.Fatal("nothing is left")
	}
	first := j.guard
	if j.ReleaseIfAllEnded() {
		t.Fatal("over while it runs")
	}
	if second := j.guard; second.shell == nil || second == first {
		t.Errorf("the guard of what still runs: %v, after %v", second, first)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	last := j.guard
	for deadline := time.Now().Add(10 * time.Second); !j.ReleaseIfAllEnded(); {
		if last = j.guard; time.Now().After(deadline) {
			j.TerminateAndWait()
			t.Fatal("never over")
		}
	}
	<-last.ended
	if j.guard.shell != nil || isGroupRunning(j.pid) {
		t.Error("a guard stays when its group has gone")
	}
}

// TestJobIsTold: a job receives the line that it may wait for, and then the end of its input.
func TestJobIsTold(t *testing.T) {
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	j, err := StartJob(t.Context(), JobOptions{Command: Command{Path: "/bin/sh", Args: []string{"-c", "read -r x && ! read -r x"}}, Output: output})
	if err != nil {
		t.Fatal(err)
	}
	if exit, _, _ := j.WaitExit(); exit.Code != 0 {
		t.Error(exit)
	}
}
