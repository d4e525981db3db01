package proc

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// RunOptions describes a one-shot command for [Run].
type RunOptions struct {
	Command
	Stdin    []byte // input of the command, followed by end of file
	Combined bool   // merges standard error into Result.Stdout, in the order written
	Limit    int    // bounds each captured stream; the rest is read and discarded. 0 means 10 MB
	// Tee receives a copy of standard output as it is written, without a limit.
	// Write is called from one goroutine and must not fail; nil means no copy.
	Tee       io.Writer
	Timeout   time.Duration // how long the command may run; 0 means no limit
	KillAfter time.Duration // time between SIGTERM and SIGKILL for the group; 0 means 500 ms
	// NoteFD is the descriptor (3 or more) to which the command writes a note; 0 means none. Not for Windows.
	NoteFD int
}

const (
	defaultOutputLimit = 10 << 20
	maxNoteBytes       = 4 << 10 // maximum size of a note; longer notes are cut off
)

// Result is the outcome of a command.
type Result struct {
	Stdout, Stderr []byte
	Truncated      bool // a stream was longer than Limit
	Exit           ExitStatus
	TimedOut       bool   // the command was killed because of Timeout
	Note           []byte // what the command wrote to NoteFD, at most 4 KB
}

// Run runs a command to its end. If Timeout expires or ctx is cancelled first, the whole group gets SIGTERM and, after
// KillAfter, SIGKILL. Background processes of the command are killed when it exits. Run returns an error if the command did not
// start or ctx was cancelled. The exit status of the command is Result.Exit.
func Run(ctx context.Context, o RunOptions) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	cmd, err := o.build()
	if err != nil {
		return Result{}, err
	}
	cmd.Stdin = bytes.NewReader(o.Stdin)
	limit := positiveOr(o.Limit, defaultOutputLimit)
	out := &outputHeadCapture{limit: limit, tee: o.Tee}
	errs := out
	var pp pipes
	stdout := pp.pipeFromChild(&cmd.Stdout)
	stderr := stdout
	if o.Combined {
		cmd.Stderr = cmd.Stdout
	} else {
		errs = &outputHeadCapture{limit: limit}
		stderr = pp.pipeFromChild(&cmd.Stderr)
	}
	aside := pp.pipeFromChildFD(cmd, o.NoteFD)
	cmd.WaitDelay = maxWaitForKilledGroup // bounds the copying of Stdin after the exit
	var done <-chan struct{}
	err = pp.startAndCloseChildEnds(o.Command, func() (err error) {
		done, err = startWithDeathSignal(cmd)
		return err
	})
	if err != nil {
		return Result{}, err
	}
	guard := startKillGuardInsideGroup(cmd.Process.Pid)
	var copies sync.WaitGroup
	copies.Go(func() { out.readFrom(stdout) })
	if !o.Combined {
		copies.Go(func() { errs.readFrom(stderr) })
	}

	var res Result
	timedOut := o.waitOrTerminateAfterTimeout(ctx, cmd.Process.Pid, done)
	killGroupAndEndGuard(guard, cmd.Process.Pid)
	<-done
	res.Exit, res.Note = exitStatusOf(cmd.ProcessState), readNote(aside)
	waitAtMost(&copies, maxWaitForKilledGroup)
	closeAll(pp.parentEnds)
	copies.Wait()

	res.TimedOut = timedOut
	res.Stdout, res.Truncated = out.buf.Bytes(), out.truncated
	if !o.Combined {
		res.Stderr, res.Truncated = errs.buf.Bytes(), res.Truncated || errs.truncated
	}
	if !timedOut {
		return res, ctx.Err()
	}
	return res, nil
}

// startWithDeathSignal starts a command that the kernel kills when this program exits (Linux). The kernel does this when the
// thread that started it exits, so a goroutine locked to its thread starts the command, waits for it and then closes done.
func startWithDeathSignal(cmd *exec.Cmd) (done <-chan struct{}, err error) {
	dieWithParent(cmd.SysProcAttr)
	started, ended := make(chan error, 1), make(chan struct{})
	go func() { // returns when the command exits
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // cmd.ProcessState says more than the error
		}
		close(ended)
	}()
	return ended, <-started
}

// readNote reads the note of a command that has exited. It does not wait long for the note, because a process that left
// the group may still have the pipe open.
func readNote(noteFile *os.File) []byte {
	if noteFile == nil {
		return nil
	}
	defer time.AfterFunc(maxWaitForKilledGroup, func() { noteFile.Close() }).Stop()
	left := make([]byte, maxNoteBytes)
	n, _ := noteFile.Read(left) // an error means that the command wrote no note
	return left[:n]
}

// waitOrTerminateAfterTimeout waits until a command exits. It ends the command after Timeout or when ctx is cancelled.
func (o RunOptions) waitOrTerminateAfterTimeout(ctx context.Context, pid int, exited <-chan struct{}) (timedOut bool) {
	var timeout <-chan time.Time
	if o.Timeout > 0 {
		timeout = time.After(o.Timeout)
	}
	select {
	case <-exited:
		return false
	case <-timeout:
		timedOut = true
	case <-ctx.Done():
	}
	sendSIGTERMAndWaitWithoutKill(pid, exited, positiveOr(o.KillAfter, defaultStopGrace))
	return timedOut
}

// sendSIGTERMAndWaitWithoutKill sends SIGTERM to a group and waits at most grace for the command; the caller kills the rest.
func sendSIGTERMAndWaitWithoutKill(pgid int, done <-chan struct{}, grace time.Duration) {
	signalProcessGroup(pgid, sigTerm)
	closedWithin(done, grace)
}

// waitAtMost waits for wg, but not longer than d, because background processes may keep a pipe open.
func waitAtMost(wg *sync.WaitGroup, d time.Duration) {
	all := make(chan struct{})
	go func() { // returns when the caller has closed the pipes
		wg.Wait()
		close(all)
	}()
	closedWithin(all, d)
}

// outputHeadCapture keeps the first limit bytes of a stream and discards the rest.
type outputHeadCapture struct {
	limit     int
	tee       io.Writer // nil means none
	buf       bytes.Buffer
	truncated bool
}

func (c *outputHeadCapture) readFrom(r *os.File) {
	_, _ = io.Copy(c, r) // a read error counts as the end of the stream
}

func (c *outputHeadCapture) Write(p []byte) (int, error) {
	if c.tee != nil {
		_, _ = c.tee.Write(p) // must not fail
	}
	keep := min(len(p), c.limit-c.buf.Len())
	c.buf.Write(p[:keep])
	c.truncated = c.truncated || keep < len(p)
	return len(p), nil
}

// TempDir is a private directory below the system's temporary directory. It is removed by Remove, or when this program
// is killed. Remove does nothing for a nil TempDir.
type TempDir struct {
	Path  string // absolute
	guard exitCleanupGuard
	once  sync.Once
	err   error
}

// MakeTempDir creates a directory whose name begins with prefix. The caller must call Remove.
func MakeTempDir(prefix string) (*TempDir, error) {
	return newTempDirWithExitScript(prefix, removeDirScript)
}

// MakeTempDirKillingMarked is like MakeTempDir, but for a run of many processes. In the environment of each process, markerVariable must
// contain the base name of the directory. If this program is killed, these processes get SIGTERM and, 500 ms later, SIGKILL,
// and then the directory is removed. The processes are found only on Linux.
func MakeTempDirKillingMarked(prefix, markerVariable string) (*TempDir, error) {
	return newTempDirWithExitScript(prefix, stopRunProcessesAndRemoveDirScript, markerVariable)
}

// newTempDirWithExitScript creates a temporary directory. When this program exits, exitCleanupScript runs; its
// arguments are the directory and extraScriptArgs.
func newTempDirWithExitScript(namePrefix, exitCleanupScript string, extraScriptArgs ...string) (*TempDir, error) {
	dir, err := os.MkdirTemp("", namePrefix)
	if err != nil {
		return nil, err
	}
	return &TempDir{Path: dir, guard: startExitCleanupGuard(0, exitCleanupScript, append([]string{dir}, extraScriptArgs...)...)}, nil
}

// Remove removes the directory with its content; further calls return the result of the first.
func (d *TempDir) Remove() error {
	if d == nil {
		return nil
	}
	d.once.Do(func() {
		d.guard.stopWithoutCleanup()
		d.err = os.RemoveAll(d.Path)
	})
	return d.err
}
