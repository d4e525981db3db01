package hook

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
)

// exitNotFound is what a shell answers for a command it cannot find.
const exitNotFound = 127

// drainLimit bounds the wait for output that a process left behind by the hook
// still holds open.
const drainLimit = 100 * time.Millisecond

// outputLimit bounds what is kept of a command's standard output, in bytes.
const outputLimit = 2 << 20

// command runs a command hook, at its place among those of the event: the input
// on its standard input, the verdict from its exit status and output (spec:
// cli-contract 5.5).
func (r *Runner) command(ctx context.Context, c *call, e *entry, place int) hookResult {
	p, err := proc.Start(ctx, proc.Options{
		Command: proc.Command{Path: program(e)[0], Args: program(e)[1:], Env: r.environ(c, e, place), Dir: c.cwd},
		Grace:   time.Nanosecond, // stdin is closed at once: nothing to wait for before SIGTERM
	})
	if err != nil {
		a := hookResult{outcome: failed, fault: faultFailed, stderr: err.Error()}
		if errors.Is(err, fs.ErrNotExist) {
			a.fault = faultMissing
		}
		return a
	}
	_, writeErr := p.Stdin().Write(c.stdin)
	p.Stdin().CloseWhenSent()
	out := watch(p.Stdout())
	timer := time.NewTimer(e.timeout)
	if e.config.Async || e.config.AsyncRewake {
		return r.detach(ctx, p, out, timer)
	}
	progress, how := r.await(ctx, p, out, timer)
	switch how {
	case letGo:
		return r.detach(ctx, p, out, timer)
	case tooLate:
		p.Stop(ctx)
		<-out.ended
		return hookResult{
			outcome: cancelled, fault: faultSilent, timedOut: true, exit: new(1),
			stdout: out.so(), stderr: p.StderrTail(), progress: progress,
		}
	case calledOff:
		timer.Stop()
		p.Stop(context.WithoutCancel(ctx)) // it may clean up
		<-out.ended
		return hookResult{outcome: cancelled, stdout: out.so(), stderr: p.StderrTail(), progress: progress}
	case itself:
		timer.Stop()
	}
	out.wait(drainLimit)
	a := hookResult{stderr: p.StderrTail(), progress: progress}
	p.Stop(ctx) // what the command left behind ends with it
	<-out.ended
	a.stdout = out.so()
	select {
	case <-out.async: // it asked and ended before it was let go
		return hookResult{outcome: succeeded, detached: true}
	default:
	}
	if writeErr != nil {
		a.outcome, a.fault, a.stderr = failed, faultFailed, writeErr.Error()
		return a
	}
	exit, _ := p.Exit()
	if exit.Signal != "" {
		exit.Code = 1
		a.killed = true
	}
	a.judge(c.event, e.label(), exit.Code)
	return a
}

// waitResult is how the wait for a command ended.
type waitResult int

const (
	itself waitResult = iota
	letGo             // it goes on by itself
	tooLate
	calledOff
)

// await waits for the command and notes what it prints meanwhile.
func (r *Runner) await(ctx context.Context, p *proc.Process, out *outputWatcher, timer *time.Timer) ([]partialOutput, waitResult) {
	var look <-chan time.Time
	if r.o.ProgressEvery > 0 {
		tick := time.NewTicker(r.o.ProgressEvery)
		defer tick.Stop()
		look = tick.C
	}
	var progress []partialOutput
	var last partialOutput
	for {
		select {
		case <-p.Done():
			return progress, itself
		case limit := <-out.async:
			if limit > 0 {
				timer.Reset(limit)
			}
			return nil, letGo
		case <-timer.C:
			return progress, tooLate
		case <-ctx.Done():
			return progress, calledOff
		case <-look:
			if now := (partialOutput{out.so(), p.StderrTail()}); now != last {
				progress, last = append(progress, now), now
			}
		}
	}
}

// judge reads the verdict of an exit status.
func (a *hookResult) judge(event, label string, code int) {
	a.exit = &code
	switch code {
	case 0:
		a.outcome = succeeded
		a.read(event)
	case exitBlock:
		a.outcome, a.blocked = failed, true
		a.bare = strings.TrimSpace(a.stderr)
		text := a.stderr
		if a.bare == "" {
			text = "No stderr output"
		}
		a.block = "[" + label + "]: " + text
	case exitNotFound:
		a.outcome, a.fault = failed, faultMissing
	default:
		a.outcome, a.fault = failed, faultFailed
	}
}

// detach lets a hook go on by itself until it ends, its time is over or the
// runner is closed.
func (r *Runner) detach(ctx context.Context, p *proc.Process, out *outputWatcher, timer *time.Timer) hookResult {
	ctx = context.WithoutCancel(ctx)
	job := func() {
		defer timer.Stop()
		select {
		case <-p.Done():
			out.wait(drainLimit)
		case <-timer.C:
		case <-r.quit:
		}
		p.Stop(ctx)
		<-out.ended
	}
	r.mu.Lock()
	closed := r.closed
	if !closed {
		r.jobs.Go(job) // ends with the command, its timeout or Close
	}
	r.mu.Unlock()
	if closed {
		timer.Stop()
		p.Stop(ctx)
		<-out.ended
	}
	return hookResult{outcome: succeeded, detached: true}
}

// program is what is run: without args a script for a shell.
func program(e *entry) []string {
	c := e.config
	switch {
	case c.Args != nil:
		return append([]string{c.Command}, c.Args...)
	case c.Shell == "powershell":
		return []string{"pwsh", "-NoProfile", "-NonInteractive", "-Command", c.Command}
	}
	return []string{proc.Shell, "-c", c.Command}
}

// environ is the environment of a command; the last of equal names counts.
func (r *Runner) environ(c *call, e *entry, place int) []string {
	env := append(slices.Clone(r.o.Environ),
		"CLAUDE_PROJECT_DIR="+r.o.ProjectDir,
		"CLAUDECODE=1",
		"CLAUDE_CODE_CHILD_SESSION=1",
		"CLAUDE_CODE_SESSION_ID="+c.sessionID,
		"CLAUDE_CODE_SESSION_ATTENDED=0",
		"CLAUDE_CODE_ENTRYPOINT="+r.o.Entrypoint,
	)
	if r.o.PID != 0 {
		env = append(env, "CLAUDE_PID="+strconv.Itoa(r.o.PID))
	}
	if c.effort != "" {
		env = append(env, "CLAUDE_EFFORT="+c.effort)
	}
	if file := r.envFile(c, place); file != "" {
		env = append(env, "CLAUDE_ENV_FILE="+file)
	}
	return append(env, e.environ...)
}

// outputWatcher is a command's standard output as it comes in.
type outputWatcher struct {
	async chan time.Duration // its first line asked to be let go, for so long; 0 = unsaid
	ended chan struct{}      // closed at the end

	mu   sync.Mutex
	text strings.Builder
}

// so is what has come so far.
func (w *outputWatcher) so() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// add keeps what has come, within the limit, and returns all of it.
func (w *outputWatcher) add(piece []byte) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(piece[:min(len(piece), outputLimit-w.text.Len())])
	return w.text.String()
}

// watch reads until r ends, which the process's Stop brings about.
func watch(r io.Reader) *outputWatcher {
	w := &outputWatcher{async: make(chan time.Duration, 1), ended: make(chan struct{})}
	go func() { // ends with r
		defer close(w.ended)
		buf := make([]byte, 8<<10)
		first := true
		for {
			n, err := r.Read(buf)
			all := w.add(buf[:n])
			if first {
				line, _, whole := strings.Cut(all, "\n")
				limit, async := isAsync(line)
				if async {
					w.async <- limit
				}
				first = !async && !whole && len(line) < len(buf)
			}
			if err != nil {
				return
			}
		}
	}()
	return w
}

// wait gives the output d to end.
func (w *outputWatcher) wait(d time.Duration) {
	select {
	case <-w.ended:
	case <-time.After(d):
	}
}

// envEvents are the events whose hooks may write shell code for later
// commands, in the order in which it runs.
var envEvents = [...]string{"Setup", "SessionStart", "CwdChanged", "FileChanged"}

// envFile is the file in which a hook of the event finds CLAUDE_ENV_FILE; empty
// = none. What an earlier run of a repeatable event wrote is gone.
func (r *Runner) envFile(c *call, place int) string {
	if r.o.EnvDir == "" || !slices.Contains(envEvents[:], c.event) || os.MkdirAll(r.o.EnvDir, 0o700) != nil {
		return ""
	}
	return filepath.Join(r.o.EnvDir, envPrefix(c.event)+strconv.Itoa(place)+".sh")
}

func envPrefix(event string) string { return strings.ToLower(event) + "-hook-" }

// forgetEnv drops what hooks wrote when the event came last.
func (r *Runner) forgetEnv(event string) {
	if event != "CwdChanged" && event != "FileChanged" {
		return
	}
	for _, f := range r.envFiles(event) {
		_ = os.Remove(f) // of a file that cannot be removed the old code runs
	}
}

// envFiles are the files that hooks of the event wrote, in configured order.
func (r *Runner) envFiles(event string) []string {
	files, err := filepath.Glob(filepath.Join(r.o.EnvDir, envPrefix(event)+"*.sh"))
	if err != nil {
		return nil
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return files
}

// Script is the shell code that hooks left for later commands; empty = none.
func (r *Runner) Script() string {
	if r.o.EnvDir == "" {
		return ""
	}
	var parts []string
	for _, event := range envEvents {
		for _, f := range r.envFiles(event) {
			if code, err := os.ReadFile(f); err == nil && len(strings.TrimSpace(string(code))) > 0 {
				parts = append(parts, strings.TrimSpace(string(code)))
			}
		}
	}
	return strings.Join(parts, "\n")
}
