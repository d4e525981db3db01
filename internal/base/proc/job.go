package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"sync"
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
	done  <-chan struct{}
	state func() *os.ProcessState // valid after done
	aside *os.File                // nil = none, or read

	mu      sync.Mutex
	guard   guard
	stopped bool // what is left is ended by Stop
}

// StartJob starts a command whose input is an empty line: it comes when a guard is up, and never when this program is
// killed before. A command that must not leave anything behind then reads it first. ctx bounds only the starting.
//
// A program that cannot be found gives an error that wraps [fs.ErrNotExist].
func StartJob(ctx context.Context, o JobOptions) (*Job, error) {
	cmd, err := o.prepare(ctx)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = o.Output, o.Output
	var pp pipes
	input := pp.toChild(&cmd.Stdin)
	j := &Job{aside: pp.aside(cmd, o.Aside), state: func() *os.ProcessState { return cmd.ProcessState }}
	err = pp.start(o.Command, func() (err error) {
		j.done, err = follow(cmd)
		return err
	})
	if err != nil {
		return nil, err
	}
	j.pid = cmd.Process.Pid
	j.guard = watchOver(j.pid)
	_, _ = input.WriteString("\n") // it may have ended already
	input.Close()
	return j, nil
}

// Done is closed when the command has ended. What it has started may go on.
func (j *Job) Done() <-chan struct{} { return j.done }

// Stop ends the command and all that it has left behind, with SIGTERM and
// 500 ms later SIGKILL, and returns when they are gone. After the end of the
// command there is no grace. It may be called while Leave is at work.
func (j *Job) Stop() {
	j.mu.Lock()
	j.stopped = true
	j.mu.Unlock()
	terminate(j.pid, j.done, defaultGrace)
	j.mu.Lock()
	defer j.mu.Unlock()
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
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stopped { // what still shows is dying, and the guard goes with it
		return exitOf(j.state()), note, false
	}
	outside := j.guard
	if left = groupRuns(j.pid); left {
		j.guard = watch(j.pid)
	}
	outside.end() // not before there is another one
	return exitOf(j.state()), note, left
}

// Over reports that what the command has left behind has ended since, of itself: nothing is left of the job, its guard
// included, and Stop must not be called any more. It is for after [Job.Leave].
func (j *Job) Over() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	outside := watchOver(j.pid)
	j.guard.end() // as a member of the group it would show
	if groupRuns(j.pid) {
		j.guard = watch(j.pid)
		outside.end()
		return false
	}
	outside.end()
	j.guard = guard{}
	return true
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
	// Network gives the command a network of its own, in which nothing is up yet;
	// see [ErrNetwork].
	Network bool
	// Files are the command's from descriptor 3 on, where a child can have any.
	Files []*os.File
}

// ErrNetwork says that a command cannot have a network of its own here.
var ErrNetwork = errors.New("a network of its own is not allowed here")

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
	ways := []func(*syscall.SysProcAttr){func(*syscall.SysProcAttr) {}}
	if o.Network {
		ways = networks()
	}
	err := ErrNetwork
	for _, way := range ways {
		var a *Attached
		if a, err = o.start(way); err == nil {
			return a, nil
		}
	}
	if o.Network && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", ErrNetwork, err)
	}
	return nil, err
}

// start starts the command, with what way does to it.
func (o AttachOptions) start(way func(*syscall.SysProcAttr)) (*Attached, error) {
	cmd, err := o.build()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = o.Stdin, o.Stdout, o.Stderr, o.Files
	cmd.WaitDelay = sweepLimit
	way(cmd.SysProcAttr)
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

// PID is the command's process id, which is also the id of its group.
func (a *Attached) PID() int { return a.pid }

// Own are the processes of this program's own making: the command, and what
// watches over its group.
func (a *Attached) Own() []int {
	return append([]int{a.pid}, a.guard.own()...)
}

// Done is closed when the command has ended. What it has started may go on.
func (a *Attached) Done() <-chan struct{} { return a.done }

// Exit waits for the end of the command and tells how it ended.
func (a *Attached) Exit() Exit {
	<-a.done
	return exitOf(a.cmd.ProcessState)
}

// CPU is the processor time that the command took, with that of the children it has
// waited for; it is valid after Done.
func (a *Attached) CPU() time.Duration {
	return a.cmd.ProcessState.UserTime() + a.cmd.ProcessState.SystemTime()
}

// Signal sends a signal to the command and its group.
func (a *Attached) Signal(sig syscall.Signal) { signalGroup(a.pid, sig) }

// Stop ends the command and all that it has left behind in its group: SIGTERM,
// and SIGKILL when grace is over. It gives the terminal back and returns when
// they are gone.
func (a *Attached) Stop(grace time.Duration) {
	if groupAlive(a.pid) {
		a.guard.end() // or the group would never be empty
		signalGroup(a.pid, sigTerm)
		while(func() bool { return groupRuns(a.pid) }, grace)
	}
	endGroup(a.guard, a.pid)
	<-a.done
	if a.terminal != nil {
		takeForeground(a.terminal)
	}
}

// Hurry kills the command and its group unless they end within grace.
func (a *Attached) Hurry(grace time.Duration) {
	if !within(a.done, grace) {
		signalGroup(a.pid, sigKill)
	}
}

// Kill ends the command and its group at once.
func (a *Attached) Kill() { signalGroup(a.pid, sigKill) }
