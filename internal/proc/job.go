package proc

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// JobOptions describes a command for [StartJob].
type JobOptions struct {
	Command
	// Output receives what the command prints. The caller keeps it and may
	// close it when the job has started.
	Output *os.File
	// Aside is a descriptor as that of [RunOptions].
	Aside int
}

// Job is a command that nobody has to read from: what it prints goes to a
// file, so that it may outlive its caller's patience, and so may what it leaves
// behind. The caller must end it with [Job.Stop], or call [Job.Leave] after
// its end.
type Job struct {
	pid   int
	guard guard
	done  <-chan struct{}
	state func() *os.ProcessState // valid after done
	aside *os.File                // nil = none, or read
}

// StartJob starts a command without input. ctx bounds only the starting.
//
// A program that cannot be found gives an error that wraps [fs.ErrNotExist].
func StartJob(ctx context.Context, o JobOptions) (*Job, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.Path, err)
	}
	cmd, err := o.build()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = o.Output, o.Output
	var pp pipes
	j := &Job{aside: pp.aside(cmd, o.Aside), state: func() *os.ProcessState { return cmd.ProcessState }}
	if pp.err == nil {
		j.done, pp.err = follow(cmd)
	}
	pp.closeChildEnds()
	if pp.err != nil {
		pp.closeOurEnds()
		return nil, fmt.Errorf("starting %s: %w", o.Path, pp.err)
	}
	j.pid = cmd.Process.Pid
	j.guard = watchOver(j.pid)
	return j, nil
}

// Done is closed when the command has ended. What it has started may go on.
func (j *Job) Done() <-chan struct{} { return j.done }

// Stop ends the command and all that it has left behind, with SIGTERM and
// 500 ms later SIGKILL, and returns when they are gone. After the end of the
// command there is no grace.
func (j *Job) Stop() {
	terminate(j.pid, j.done, defaultGrace)
	endGroup(j.guard, j.pid)
	<-j.done
}

// Leave waits for the end of the command and lets go of it; note is what it has
// left aside. Left reports that something which the command has started still
// runs: it goes on until [Job.Stop].
func (j *Job) Leave() (exit Exit, note []byte, left bool) {
	<-j.done
	note = noteOf(j.aside)
	if j.aside != nil {
		j.aside.Close()
		j.aside = nil
	}
	outside := j.guard
	if left = groupAlive(j.pid); left {
		j.guard = watch(j.pid)
	}
	outside.end() // not before there is another one
	return exitOf(j.state()), note, left
}

// AttachOptions describes a command for [Attach].
type AttachOptions struct {
	Command
	// Stdin, Stdout and Stderr become the command's own where they are files, so that
	// nothing stands between; others are copied. Nil is the null device.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Terminal says that Stdin is a terminal: the command gets the foreground of it.
	Terminal bool
}

// Attached is a command that takes this program's place at its streams. The
// caller must call [Attached.Stop], also for one that ended by itself.
type Attached struct {
	pid      int
	guard    guard
	done     <-chan struct{}
	cmd      *exec.Cmd // its state is valid after done
	terminal *os.File  // nil = none was handed over
}

// Attach starts a command in a group of its own. ctx bounds only the starting.
//
// A program that cannot be found gives an error that wraps [fs.ErrNotExist].
func Attach(ctx context.Context, o AttachOptions) (*Attached, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.Path, err)
	}
	cmd, err := o.build()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.Stdin, o.Stdout, o.Stderr
	cmd.WaitDelay = sweepLimit
	a := &Attached{cmd: cmd}
	if in, ok := o.Stdin.(*os.File); ok && o.Terminal {
		a.terminal = in
		toForeground(cmd.SysProcAttr, in)
	}
	if a.done, err = follow(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.Path, err)
	}
	a.pid = cmd.Process.Pid
	a.guard = watch(a.pid)
	return a, nil
}

// Done is closed when the command has ended. What it has started may go on.
func (a *Attached) Done() <-chan struct{} { return a.done }

// Exit waits for the end of the command and tells how it ended.
func (a *Attached) Exit() Exit {
	<-a.done
	return exitOf(a.cmd.ProcessState)
}

// Signal sends a signal to the command and its group.
func (a *Attached) Signal(sig syscall.Signal) { signalGroup(a.pid, sig) }

// Stop ends the command and all that it has left behind in its group: SIGTERM,
// and SIGKILL when grace is over. It gives the terminal back and returns when
// they are gone.
func (a *Attached) Stop(grace time.Duration) {
	if groupAlive(a.pid) {
		terminateGroup(a.pid, a.guard, grace)
	}
	endGroup(a.guard, a.pid)
	<-a.done
	if a.terminal != nil {
		takeForeground(a.terminal)
	}
}

// terminateGroup asks a group to end and waits, at most grace, until nothing but
// its guard is left.
func terminateGroup(pgid int, g guard, grace time.Duration) {
	g.end() // or the group would never be empty
	signalGroup(pgid, sigTerm)
	over := time.After(grace)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for groupAlive(pgid) {
		select {
		case <-tick.C:
		case <-over:
			return
		}
	}
}

// Hurry kills the command and its group unless they end within grace.
func (a *Attached) Hurry(grace time.Duration) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-a.done:
	case <-timer.C:
		signalGroup(a.pid, sigKill)
	}
}

// Kill ends the command and its group at once.
func (a *Attached) Kill() { signalGroup(a.pid, sigKill) }
