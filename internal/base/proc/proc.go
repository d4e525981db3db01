// Package proc starts, drains and stops child processes. It is the only package of the module that uses os/exec.
//
// Every child leads its own process group, and no process of that group survives [Process.Stop] or [Run]. A descendant that leaves
// the group (setsid) cannot be reached. If claudeless itself is killed, a guard process ends the group. The guard starts about half a
// millisecond after the child. If claudeless is killed in between, a child of [Start] only gets the end of its input, and a child of
// [Run] is killed as well (on Linux). A child of [StartJob] can avoid this gap: it gets a line of input as soon as the guard runs.
package proc

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Command describes a command. Only Path is required.
type Command struct {
	Path string   // a program name, looked up in the PATH of Env, or a path with a slash, relative to Dir
	Args []string // without the program's name
	Env  []string // complete environment ("K=V", the last duplicate counts); nil means empty, not this process's
	Dir  string   // empty means this process's directory
	// Isolated runs the command in its own network and process namespaces: it has no network access, and all
	// processes that it starts are killed when it exits. Start fails if the system does not allow that.
	Isolated bool
}

// Options describes a child for [Start].
type Options struct {
	Command
	// Stderr receives a copy of the child's standard error as it is written. Write
	// is called from one goroutine and must not block; nil means no copy.
	Stderr     io.Writer
	StdinLimit int // bounds the input that the child has not read yet; 0 means 64 MB
	// Grace is how long Stop waits after closing stdin, TermGrace how long after SIGTERM; 0 means 500 ms each.
	Grace, TermGrace time.Duration
	Interrupt        bool // Stop sends SIGINT to the child instead of closing stdin
}

const (
	defaultStopGrace      = 500 * time.Millisecond
	defaultStdinLimit     = 64 << 20
	maxWaitForKilledGroup = 100 * time.Millisecond // limits the wait for a killed group, which exists until its last zombie is reaped
	stderrTailBytes       = 64 << 10
)

// Process is a child that is running or has exited. All methods may be called from many goroutines.
type Process struct {
	pid              int
	guard            exitCleanupGuard
	grace, termGrace time.Duration
	interrupt        bool
	stdin            *AsyncWriter
	stdout, stderr   *os.File
	tail             TailBuffer
	done             chan struct{} // closed after the child was reaped
	exit             ExitStatus    // valid after done
	drained          chan struct{} // closed at the end of standard error

	stopOnce sync.Once
	stopped  chan struct{}
}

// Start runs a child with pipes on its three standard streams. ctx bounds only the start; the child runs until it
// exits or [Process.Stop] stops it. The caller must call Stop, even if the child has exited.
//
// If the program cannot be found, the error wraps [fs.ErrNotExist].
func Start(ctx context.Context, o Options) (*Process, error) {
	cmd, err := o.buildUnlessCancelled(ctx)
	if err != nil {
		return nil, err
	}
	p := &Process{
		grace:     positiveOr(o.Grace, defaultStopGrace),
		termGrace: positiveOr(o.TermGrace, defaultStopGrace),
		interrupt: o.Interrupt,
		tail:      TailBuffer{Limit: stderrTailBytes},
		done:      make(chan struct{}),
		drained:   make(chan struct{}),
		stopped:   make(chan struct{}),
	}
	var pp pipes
	stdin := pp.pipeToChild(&cmd.Stdin)
	p.stdout = pp.pipeFromChild(&cmd.Stdout)
	p.stderr = pp.pipeFromChild(&cmd.Stderr)
	if err := pp.startAndCloseChildEnds(o.Command, cmd.Start); err != nil {
		return nil, err
	}
	p.pid = cmd.Process.Pid
	p.guard = startKillGuardInsideGroup(p.pid)
	p.stdin = StartAsyncWriter(stdin, positiveOr(o.StdinLimit, defaultStdinLimit))
	go p.copyStderr(o.Stderr) // returns at the end of standard error; Stop closes it
	go func() {               // returns when the child exits
		_ = cmd.Wait() // cmd.ProcessState says more than the error
		p.exit = exitStatusOf(cmd.ProcessState)
		close(p.done)
	}()
	return p, nil
}

func positiveOr[T int | time.Duration](v, fallback T) T { return cmp.Or(max(v, 0), fallback) }

func (c Command) buildUnlessCancelled(ctx context.Context) (*exec.Cmd, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	return c.build()
}

func (c Command) build() (*exec.Cmd, error) {
	path, err := c.LookPath()
	if err != nil {
		return nil, err
	}
	env := c.Env
	if env == nil {
		env = []string{}
	}
	attr := newProcessGroupAttr()
	if c.Isolated {
		if err := addNetworkAndPIDNamespaces(attr); err != nil {
			return nil, err
		}
	}
	return &exec.Cmd{
		Path: path, Args: append([]string{c.Path}, c.Args...),
		Env: env, Dir: c.Dir, SysProcAttr: attr,
	}, nil
}

// pipes creates the pipes of a child's standard streams and keeps the first error.
type pipes struct {
	childEnds, parentEnds []*os.File
	err                   error
}

func (pp *pipes) newUntrackedPipe() (r, w *os.File) {
	if pp.err != nil {
		return nil, nil
	}
	r, w, pp.err = os.Pipe()
	return r, w
}

func (pp *pipes) pipeToChild(childReader *io.Reader) (parentWriter *os.File) {
	r, w := pp.newUntrackedPipe()
	if pp.err == nil {
		*childReader = r
		pp.childEnds, pp.parentEnds = append(pp.childEnds, r), append(pp.parentEnds, w)
	}
	return w
}

func (pp *pipes) pipeFromChild(stream *io.Writer) *os.File {
	r, w := pp.newChildOutputPipe()
	if w != nil {
		*stream = w
	}
	return r
}

// pipeFromChildFD gives a command a pipe as descriptor fd. It returns the read end, or nil if fd cannot be inherited.
func (pp *pipes) pipeFromChildFD(cmd *exec.Cmd, fd int) (readEnd *os.File) {
	const first = 3 // after the standard streams
	if fd < first || !canChildInheritExtraFiles {
		return nil
	}
	r, w := pp.newChildOutputPipe()
	cmd.ExtraFiles = append(make([]*os.File, fd-first), w)
	return r
}

func (pp *pipes) newChildOutputPipe() (r, w *os.File) {
	if r, w = pp.newUntrackedPipe(); pp.err == nil {
		pp.childEnds, pp.parentEnds = append(pp.childEnds, w), append(pp.parentEnds, r)
	}
	return r, w
}

// startAndCloseChildEnds starts a command with the pipes and closes the child's ends.
func (pp *pipes) startAndCloseChildEnds(c Command, start func() error) error {
	if pp.err == nil {
		pp.err = start()
	}
	closeAll(pp.childEnds)
	if pp.err != nil {
		closeAll(pp.parentEnds)
		return fmt.Errorf("starting %s: %w", c.Path, pp.err)
	}
	return nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func (p *Process) copyStderr(mirror io.Writer) {
	defer close(p.drained)
	buf := make([]byte, 16<<10)
	for {
		n, err := p.stderr.Read(buf)
		_, _ = p.tail.Write(buf[:n]) // never fails
		if mirror != nil && n > 0 {
			if _, werr := mirror.Write(buf[:n]); werr != nil {
				mirror = nil
			}
		}
		if err != nil {
			return
		}
	}
}

// PID returns the child's process id, which is also the id of its group.
func (p *Process) PID() int { return p.pid }

// SignalChildOnly sends a signal to the child only, not to its group.
func (p *Process) SignalChildOnly(sig os.Signal) {
	if child, err := os.FindProcess(p.pid); err == nil {
		_ = child.Signal(sig) // the child may have exited
	}
}

// Stdin returns the queue that feeds the child's standard input. Its Write never blocks.
func (p *Process) Stdin() *AsyncWriter { return p.stdin }

// Stdout returns the child's standard output. It is at EOF when all processes have closed it, or after Stop.
func (p *Process) Stdout() io.Reader { return p.stdout }

// Done is closed when the child has exited and its exit status is known.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitStatus returns the exit status of the child; ok is false while it runs.
func (p *Process) ExitStatus() (e ExitStatus, ok bool) {
	select {
	case <-p.done:
		return p.exit, true
	default:
		return ExitStatus{}, false
	}
}

// StderrTail returns the last 64 KB that the child wrote to standard error. After the exit, it waits briefly for the rest.
func (p *Process) StderrTail() string {
	if _, ended := p.ExitStatus(); ended {
		closedWithin(p.drained, maxWaitForKilledGroup)
	}
	return p.tail.String()
}

// HasDescendants reports whether processes that the child started still run in its group. It must be called after the
// child has exited and before Stop. It is false on systems that do not report this.
func (p *Process) HasDescendants() bool {
	guards := p.guard.guardProcessIDs()
	return len(guards) > 0 && isGroupRunning(p.pid, guards...)
}

// Stop stops the child and its group. The steps are those of the MCP specification for stdio servers: close stdin and wait; send
// SIGTERM and wait; send SIGKILL. SIGTERM and SIGKILL go to the whole group. Stop returns when the child has exited and all pipes are closed,
// after at most Grace + TermGrace + 200 ms. If ctx is cancelled, Stop skips the waits. Further calls wait for the first.
func (p *Process) Stop(ctx context.Context) {
	p.stopOnce.Do(func() {
		defer close(p.stopped)
		if p.interrupt {
			p.SignalChildOnly(os.Interrupt)
		} else {
			p.stdin.CloseWhenSent()
		}
		if !p.exitsWithin(ctx, p.grace) {
			signalProcessGroup(p.pid, sigTerm)
			p.exitsWithin(ctx, p.termGrace)
		}
		killGroupAndEndGuard(p.guard, p.pid)
		p.exitsWithin(context.WithoutCancel(ctx), maxWaitForKilledGroup)
		_ = p.stdin.Close() // the reader of the pipe may have exited
		p.stdout.Close()
		p.stderr.Close()
		<-p.drained
		<-p.stdin.Done()
	})
	<-p.stopped
}

func (p *Process) exitsWithin(ctx context.Context, d time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
	case <-time.After(d):
	}
	return false
}

// killGroupAndEndGuard kills the remaining processes of a group. It ends the guard last, because this program may be killed at any moment.
func killGroupAndEndGuard(g exitCleanupGuard, pgid int) {
	WaitWhile(func() bool { return signalProcessGroup(pgid, sigKill) }, maxWaitForKilledGroup)
	g.stopWithoutCleanup()
}

// WaitWhile waits while condition returns true, but not longer than limit.
func WaitWhile(condition func() bool, limit time.Duration) {
	over := time.After(limit)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for condition() {
		select {
		case <-tick.C:
		case <-over:
			return
		}
	}
}

func closedWithin(done <-chan struct{}, d time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// ExitStatus is the exit status of a process.
type ExitStatus struct {
	Code   int    // exit status; 128 + number for a signal
	Signal string // "killed", "terminated"…; empty means the process exited
}

// String returns a text such as "exit status 3" or "signal: killed".
func (e ExitStatus) String() string {
	if e.Signal != "" {
		return "signal: " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

func exitStatusOf(state *os.ProcessState) ExitStatus {
	if state == nil {
		return ExitStatus{Code: -1}
	}
	if e, ok := exitStatusOfSignal(state); ok {
		return e
	}
	return ExitStatus{Code: state.ExitCode()}
}

// TailBuffer is a writer that keeps only the last Limit bytes. It is safe for concurrent use.
type TailBuffer struct {
	Limit int

	mu  sync.Mutex
	buf bytes.Buffer
}

// Write never fails.
func (t *TailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	t.buf.Next(max(0, t.buf.Len()-t.Limit))
	return len(p), nil
}

// String returns the kept bytes, oldest first.
func (t *TailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// ReplaceProcess replaces this process with the command. The current directory stays, and so do open files that may be
// inherited. ReplaceProcess returns only on failure; the error is [errors.ErrUnsupported] on systems that cannot do this.
func ReplaceProcess(c Command) error {
	path, err := c.LookPath()
	if err != nil {
		return err
	}
	return replaceProcess(path, append([]string{c.Path}, c.Args...), c.Env)
}

// programLookupError is an error that wraps err. Its message is text, without that of err.
type programLookupError struct {
	text string
	err  error
}

func (e programLookupError) Error() string { return e.text }

func (e programLookupError) Unwrap() error { return e.err }

// LookPath returns the path of the program that would be started. It searches the PATH of the child, unlike os/exec, which
// searches that of this process. If the program cannot be found, the error wraps [fs.ErrNotExist].
func (c Command) LookPath() (string, error) {
	if c.Path == "" {
		return "", programLookupError{"the command is empty", fs.ErrNotExist}
	}
	if strings.ContainsRune(c.Path, filepath.Separator) {
		path := c.Path
		if !filepath.IsAbs(path) && c.Dir != "" {
			path = filepath.Join(c.Dir, path)
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return "", programLookupError{"command not found: " + c.Path, fs.ErrNotExist}
		case !isExecutableFile(path, info):
			return "", programLookupError{"command is not executable: " + c.Path, fs.ErrPermission}
		}
		return path, nil
	}
	for _, dir := range filepath.SplitList(Getenv(c.Env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, c.Path)
		for _, candidate := range executablePathCandidates(path) {
			if info, err := os.Stat(candidate); err == nil && isExecutableFile(candidate, info) {
				return candidate, nil
			}
		}
	}
	return "", programLookupError{"command not found: " + c.Path, fs.ErrNotExist}
}

// Getenv returns a variable of an environment, empty if it is not set; of duplicates the last one is used.
func Getenv(env []string, key string) string {
	for _, kv := range slices.Backward(env) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == key {
			return v
		}
	}
	return ""
}

// A guard's script waits for EOF on its input, to which nothing is written: EOF means that this program has exited. Then killGroupScript
// stops the guard's own group, and killOtherGroupScript the group $1, in the steps of [Process.Stop]. removeDirScript removes the directory
// $1. stopRunProcessesAndRemoveDirScript (Linux) first stops all processes whose variable $2 is the base name of this directory.
const (
	killGroupScript                    = `read -r _; sleep 0.5; trap "" TERM; kill -TERM 0; sleep 0.5; kill -KILL 0`
	killOtherGroupScript               = `read -r _; sleep 0.5; kill -s TERM -- "-$1"; sleep 0.5; kill -s KILL -- "-$1"`
	removeDirScript                    = `read -r _; rm -rf -- "$1"`
	stopRunProcessesAndRemoveDirScript = `read -r _; for s in TERM KILL; do
for e in /proc/[0-9]*/environ; do grep -qsF -- "$2=${1##*/}" "$e" && p=${e#/proc/} && kill -s $s "${p%/environ}"; done
test $s = KILL || sleep 0.5; done 2>/dev/null; rm -rf -- "$1"`
)

// startKillGuardInsideGroup starts a guard as a member of the group pgid. While the guard runs, the group id cannot be reused.
// The group must still exist: its leader was not waited for yet, or another member is running.
func startKillGuardInsideGroup(pgid int) exitCleanupGuard {
	return startExitCleanupGuard(pgid, killGroupScript)
}

// startKillGuardOutsideGroup starts a guard process for the group pgid. The guard is in a group of its own.
// It does not keep the group id from being reused, so it must end soon after the leader of the group was waited for.
func startKillGuardOutsideGroup(pgid int) exitCleanupGuard {
	return startExitCleanupGuard(0, killOtherGroupScript, strconv.Itoa(pgid))
}
