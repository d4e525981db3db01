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
	Output *os.File // receives the output of the command; the caller owns it and may close it after the job has started
	NoteFD int      // a file descriptor as in [RunOptions]
}

// Job is a command that writes its output to a file. The output needs no reader, so the command and its background
// processes may outlive the call that started them. The caller must stop the job with [Job.TerminateAndWait], or call
// [Job.WaitExit] after the command has exited.
type Job struct {
	pid      int
	done     <-chan struct{}
	cmd      *exec.Cmd // its state is valid after done
	noteFile *os.File  // nil means none, or already read

	mu      sync.Mutex
	guard   exitCleanupGuard
	stopped bool // TerminateAndWait has killed the remaining processes
}

// StartJob starts a command. It writes an empty line to the command's stdin after a guard process has started. If this
// program is killed earlier, the command gets no line. A command that must not leave processes running therefore reads
// the line first. ctx bounds only the start.
//
// If the program cannot be found, the error wraps [fs.ErrNotExist].
func StartJob(ctx context.Context, o JobOptions) (*Job, error) {
	cmd, err := o.buildUnlessCancelled(ctx)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = o.Output, o.Output
	var pp pipes
	input := pp.pipeToChild(&cmd.Stdin)
	j := &Job{noteFile: pp.pipeFromChildFD(cmd, o.NoteFD), cmd: cmd}
	err = pp.startAndCloseChildEnds(o.Command, func() (err error) {
		j.done, err = startWithDeathSignal(cmd)
		return err
	})
	if err != nil {
		return nil, err
	}
	j.pid = cmd.Process.Pid
	j.guard = startKillGuardOutsideGroup(j.pid)
	_, _ = input.WriteString("\n") // the job may already have exited
	input.Close()
	return j, nil
}

// Done is closed when the command has exited. Processes that it started may still run.
func (j *Job) Done() <-chan struct{} { return j.done }

// TerminateAndWait stops the command and all its background processes, with SIGTERM and 500 ms later SIGKILL, and returns when they have
// exited. If the command has already exited, TerminateAndWait does not wait 500 ms. It may be called while WaitExit runs.
func (j *Job) TerminateAndWait() {
	j.mu.Lock()
	j.stopped = true
	j.mu.Unlock()
	sendSIGTERMAndWaitWithoutKill(j.pid, j.done, defaultStopGrace)
	j.mu.Lock()
	defer j.mu.Unlock()
	killGroupAndEndGuard(j.guard, j.pid)
	<-j.done
}

// WaitExit waits until the command exits. noteFDText is the text that the command wrote to its note descriptor.
// hasRunningDescendants is true if a process that the command started still runs; [Job.TerminateAndWait] stops it.
func (j *Job) WaitExit() (exit ExitStatus, noteFDText []byte, hasRunningDescendants bool) {
	<-j.done
	noteFDText = readNote(j.noteFile)
	if j.noteFile != nil {
		j.noteFile.Close()
		j.noteFile = nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stopped { // the remaining processes are being stopped, together with the guard
		return exitStatusOf(j.cmd.ProcessState), noteFDText, false
	}
	outside := j.guard
	if hasRunningDescendants = isGroupRunning(j.pid); hasRunningDescendants {
		j.guard = startKillGuardInsideGroup(j.pid)
	}
	outside.stopWithoutCleanup() // stopped only now, so that running descendants always have a guard
	return exitStatusOf(j.cmd.ProcessState), noteFDText, hasRunningDescendants
}

// ReleaseIfAllEnded reports whether all background processes of the command have exited, and then releases the job: nothing is left to
// stop, and [Job.TerminateAndWait] must not be called. It may be called only after [Job.WaitExit].
func (j *Job) ReleaseIfAllEnded() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	outside := startKillGuardOutsideGroup(j.pid)
	j.guard.stopWithoutCleanup() // otherwise the guard would be counted as a member of the group
	if isGroupRunning(j.pid) {
		j.guard = startKillGuardInsideGroup(j.pid)
		outside.stopWithoutCleanup()
		return false
	}
	outside.stopWithoutCleanup()
	j.guard = exitCleanupGuard{}
	return true
}

// ForegroundOptions describes a command for [StartForegroundCommand].
type ForegroundOptions struct {
	Command
	// Stdin, Stdout and Stderr are inherited if they are files, and copied otherwise. Nil is the null device.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool // true if Stdin is a terminal; the command then becomes the foreground group of this terminal
	// OwnTerminal starts the command in a new session. Stdin must be its controlling terminal. Windows does not support this.
	OwnTerminal bool
	Network     bool       // gives the command its own network namespace, in which no interface is up; see [ErrNoNetworkNamespace]
	Files       []*os.File // inherited from descriptor 3 on, on systems that support it
}

// ErrNoNetworkNamespace means that the system does not allow a separate network namespace.
var ErrNoNetworkNamespace = errors.New("the system does not allow a separate network namespace")

// ForegroundCommand is a command with this program's standard streams. Call [ForegroundCommand.StopGroupAndReclaimTerminal] even after the command's exit.
type ForegroundCommand struct {
	pid      int
	guard    exitCleanupGuard
	done     <-chan struct{}
	cmd      *exec.Cmd // its state is valid after done is closed
	terminal *os.File  // nil means none
}

// StartForegroundCommand starts a command in its own process group. ctx bounds only the start.
//
// If the program cannot be found, the error wraps [fs.ErrNotExist].
func StartForegroundCommand(ctx context.Context, o ForegroundOptions) (*ForegroundCommand, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.Path, err)
	}
	ways := []func(*syscall.SysProcAttr){func(*syscall.SysProcAttr) {}}
	if o.Network {
		ways = networkNamespaceModes()
	}
	err := ErrNoNetworkNamespace
	for _, way := range ways {
		var a *ForegroundCommand
		if a, err = o.start(way); err == nil {
			return a, nil
		}
	}
	if o.Network && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", ErrNoNetworkNamespace, err)
	}
	return nil, err
}

func (o ForegroundOptions) start(configure func(*syscall.SysProcAttr)) (*ForegroundCommand, error) {
	cmd, err := o.build()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = o.Stdin, o.Stdout, o.Stderr, o.Files
	cmd.WaitDelay = maxWaitForKilledGroup
	configure(cmd.SysProcAttr)
	a := &ForegroundCommand{cmd: cmd}
	switch in, ok := o.Stdin.(*os.File); {
	case o.OwnTerminal:
		setStdinAsControllingTerminal(cmd.SysProcAttr)
	case ok && o.Terminal:
		a.terminal = in
		setForegroundOnStart(cmd.SysProcAttr, in)
	}
	if a.done, err = startWithDeathSignal(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.Path, err)
	}
	a.pid = cmd.Process.Pid
	a.guard = startKillGuardInsideGroup(a.pid)
	return a, nil
}

// PID returns the command's process id, which is also the id of its group.
func (a *ForegroundCommand) PID() int { return a.pid }

// CommandAndGuardPIDs returns the ids of the processes that this program started: the command and its group's guard.
func (a *ForegroundCommand) CommandAndGuardPIDs() []int {
	return append([]int{a.pid}, a.guard.guardProcessIDs()...)
}

// Done is closed when the command has exited. Processes that it started may still run.
func (a *ForegroundCommand) Done() <-chan struct{} { return a.done }

// WaitExit waits until the command exits and returns its exit status.
func (a *ForegroundCommand) WaitExit() ExitStatus {
	<-a.done
	return exitStatusOf(a.cmd.ProcessState)
}

// CPU returns the processor time of the command and of the children it has waited for; it is valid after Done.
func (a *ForegroundCommand) CPU() time.Duration {
	return a.cmd.ProcessState.UserTime() + a.cmd.ProcessState.SystemTime()
}

// SignalGroup sends a signal to the command and its group.
func (a *ForegroundCommand) SignalGroup(sig syscall.Signal) { signalProcessGroup(a.pid, sig) }

// StopGroupAndReclaimTerminal stops the command and all remaining processes of its group, with SIGTERM and, after delayBeforeKill, with
// SIGKILL. It returns when they have exited. If the command was in the foreground of its terminal, this program returns to the foreground.
func (a *ForegroundCommand) StopGroupAndReclaimTerminal(delayBeforeKill time.Duration) {
	if groupHasMembers(a.pid) {
		a.guard.stopWithoutCleanup() // otherwise the group would never be empty
		signalProcessGroup(a.pid, sigTerm)
		WaitWhile(func() bool { return isGroupRunning(a.pid) }, delayBeforeKill)
	}
	killGroupAndEndGuard(a.guard, a.pid)
	<-a.done
	if a.terminal != nil {
		takeForeground(a.terminal)
	}
}

// KillIfRunningAfter kills the command's group unless the command exits within grace.
func (a *ForegroundCommand) KillIfRunningAfter(grace time.Duration) {
	if !closedWithin(a.done, grace) {
		signalProcessGroup(a.pid, sigKill)
	}
}

// KillGroup kills the command and its group immediately.
func (a *ForegroundCommand) KillGroup() { signalProcessGroup(a.pid, sigKill) }
