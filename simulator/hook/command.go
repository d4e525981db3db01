package hook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/claudecode"
)

// outputDrainTimeout limits the wait for the end of the output. A background process may keep the output open.
const outputDrainTimeout = 100 * time.Millisecond

// runCommandHook runs a command hook; index is its position among the hooks of the event. The command gets the input on
// standard input, and its exit status and output are the verdict (spec: cli-contract 5.5).
func (r *Runner) runCommandHook(ctx context.Context, c *eventRun, e *hookEntry, hookIndex int) hookResult {
	p, err := proc.Start(ctx, proc.Options{
		Command: proc.Command{Path: commandLineOfHook(e)[0], Args: commandLineOfHook(e)[1:], Env: r.commandEnviron(c, e, hookIndex), Dir: c.cwd},
		Grace:   time.Nanosecond, // stdin is closed immediately, so SIGTERM is sent without a grace period
	})
	if err != nil {
		return hookResult{outcome: outcomeError, missingVerdictReason: noVerdictBecauseCommandNotFound, stderr: err.Error()}
	}
	_, writeErr := p.Stdin().Write(append(slices.Clip(c.stdin), '\n'))
	p.Stdin().CloseWhenSent()
	out := startReadingHookOutput(p.Stdout())
	timer := time.NewTimer(e.timeout)
	detached := hookResult{outcome: outcomeSuccess, detached: &detachedCommand{p, out, timer}}
	// Without a host or a terminal, the end of a hook cannot start a turn, so asyncRewake does not detach it.
	if e.config.Async || e.config.AsyncRewake && (r.options.Callback != nil || r.options.Entrypoint == "cli") {
		return detached
	}
	progress, how := r.waitForCommand(ctx, p, out, timer)
	switch how {
	case commandWaitDetached:
		return detached
	case commandWaitTimedOut:
		p.Stop(ctx)
		<-out.ended
		return hookResult{outcome: outcomeCancelled, missingVerdictReason: noVerdictBecauseTimedOut, timedOut: true, exitCode: new(1), stdout: out.output(), stderr: p.StderrTail(), outputsWhileRunning: progress}
	case commandWaitCancelled:
		timer.Stop()
		p.Stop(context.WithoutCancel(ctx)) // the command may clean up before it exits
		<-out.ended
		return hookResult{outcome: outcomeCancelled, stdout: out.output(), stderr: p.StderrTail(), outputsWhileRunning: progress}
	case commandWaitExited:
		timer.Stop()
	}
	out.waitForOutputEnd(outputDrainTimeout)
	a := hookResult{stderr: p.StderrTail(), outputsWhileRunning: progress}
	r.stopExitedCommandUnlessDescendantsRun(ctx, p, out)
	a.stdout = out.output()
	select {
	case <-out.asyncRequest: // the command asked to run in the background and then exited
		return detached
	default:
	}
	if writeErr != nil {
		a.outcome, a.missingVerdictReason, a.stderr = outcomeError, noVerdictBecauseFailed, writeErr.Error()
		return a
	}
	exit, _ := p.ExitStatus()
	if exit.Signal != "" {
		exit.Code = 1
		a.wasKilled = true
	}
	a.interpretExitCode(c.event, e, exit.Code)
	return a
}

// stopExitedCommandUnlessDescendantsRun releases an exited command. If its child processes still run, Close kills them.
func (r *Runner) stopExitedCommandUnlessDescendantsRun(ctx context.Context, p *proc.Process, out *outputWatcher) {
	r.mu.Lock()
	stays := !r.closed && p.HasDescendants()
	if stays {
		r.commandsWithDescendants = append(r.commandsWithDescendants, p)
	}
	r.mu.Unlock()
	if !stays {
		p.Stop(ctx)
		<-out.ended
	}
}

type commandWaitEndReason int

const (
	commandWaitExited   commandWaitEndReason = iota
	commandWaitDetached                      // the command continues in the background
	commandWaitTimedOut
	commandWaitCancelled
)

func (r *Runner) waitForCommand(ctx context.Context, p *proc.Process, out *outputWatcher, timer *time.Timer) (outputsWhileRunning []partialOutput, endReason commandWaitEndReason) {
	var look <-chan time.Time
	if r.options.ProgressEvery > 0 {
		tick := time.NewTicker(r.options.ProgressEvery)
		defer tick.Stop()
		look = tick.C
	}
	var progress []partialOutput
	var last partialOutput
	for {
		select {
		case <-p.Done():
			return progress, commandWaitExited
		case <-out.asyncRequest:
			return nil, commandWaitDetached
		case <-timer.C:
			return progress, commandWaitTimedOut
		case <-ctx.Done():
			return progress, commandWaitCancelled
		case <-look:
			if now := (partialOutput{out.output(), p.StderrTail()}); now != last {
				progress, last = append(progress, now), now
			}
		}
	}
}

func (a *hookResult) interpretExitCode(event string, e *hookEntry, code int) {
	a.exitCode = &code
	object, hasObject := parseJSONObjectText(a.stdout)
	switch {
	case code == 0 || hasObject && code != blockExitCode:
		a.outcome = outcomeSuccess
		a.interpretSuccessfulOutput(event)
	case code == blockExitCode && isScriptMissing(event, e, a):
		a.outcome, a.missingVerdictReason = outcomeError, noVerdictBecauseFailed
		a.refusalReasonForUser = fmt.Sprintf("Hook script appears to be missing — %q exited 2 with: %s. Treating as non-blocking. If this is a plugin hook, "+
			"check the plugin install (run /plugin).", e.singleLineLabel(), strings.TrimSpace(a.stderr))
	case code == blockExitCode:
		a.outcome = outcomeError
		if out, err := parseOutput(event, object); hasObject && err == nil {
			a.outcome, a.output = outcomeSuccess, out
		}
		a.hasRefused = !a.refusesInOutput(event)
		a.rawReason = strings.TrimSpace(a.stderr)
		text := a.stderr
		if a.rawReason == "" {
			text = "No stderr output"
		}
		if e.plugin != "" {
			text += "\nThis hook comes from the " + e.pluginID + " plugin."
		}
		a.refusalReasonForUser = "[" + e.messageLabel() + "]: " + text
	case code == 126 || code == 127 || code > 128: // a shell could not run the command, or a signal ended it
		a.outcome, a.missingVerdictReason = outcomeError, noVerdictBecauseCommandNotFound
	default:
		a.outcome, a.missingVerdictReason = outcomeError, noVerdictBecauseFailed
	}
}

func isScriptMissing(event string, e *hookEntry, a *hookResult) bool {
	known, text := claudecode.HookEventNamed(event), strings.ToLower(a.stderr)
	return (known.IgnoresMissingScript || known.IgnoresMissingPluginScript && e.plugin != "") && strings.TrimSpace(a.stdout) == "" &&
		(strings.Contains(text, "no such file") || strings.Contains(text, "can't open"))
}

func commandLineOfHook(e *hookEntry) []string {
	c := e.config
	switch {
	case c.Args != nil:
		return append([]string{c.Command}, c.Args...)
	case c.Shell == "powershell":
		return []string{"pwsh", "-NoProfile", "-NonInteractive", "-Command", c.Command}
	}
	return []string{proc.Shell, "-c", c.Command}
}

// commandEnviron returns the environment of a command. If a name occurs several times, the last value applies.
func (r *Runner) commandEnviron(c *eventRun, e *hookEntry, hookIndex int) []string {
	env := append(slices.Clone(r.options.Environ),
		"CLAUDE_PROJECT_DIR="+r.options.CWD,
		"CLAUDECODE=1",
		"CLAUDE_CODE_CHILD_SESSION=1",
		"CLAUDE_CODE_SESSION_ID="+c.sessionID,
		"CLAUDE_CODE_SESSION_ATTENDED=0",
		"CLAUDE_CODE_ENTRYPOINT="+r.options.Entrypoint,
	)
	if r.options.PID != 0 {
		env = append(env, "CLAUDE_PID="+strconv.Itoa(r.options.PID))
	}
	if c.effort != "" {
		env = append(env, "CLAUDE_EFFORT="+c.effort)
	}
	if file := r.envFilePathCreatingDir(c, hookIndex); file != "" {
		env = append(env, "CLAUDE_ENV_FILE="+file)
	}
	return append(env, e.extraEnviron...)
}

// envFileEvents are the events whose hooks may write shell code to CLAUDE_ENV_FILE. Later shell commands run this code in
// the order of envFileEvents.
var envFileEvents = [...]string{"Setup", "SessionStart", "CwdChanged", "FileChanged"}

// envFilePathCreatingDir returns a hook's CLAUDE_ENV_FILE path and creates its directory; empty means none. See runCommandHook for index.
func (r *Runner) envFilePathCreatingDir(c *eventRun, hookIndex int) string {
	if r.options.EnvDir == "" || !slices.Contains(envFileEvents[:], c.event) || os.MkdirAll(r.options.EnvDir, 0o700) != nil {
		return ""
	}
	return filepath.Join(r.options.EnvDir, envFileNamePrefix(c.event)+strconv.Itoa(hookIndex)+".sh")
}

func envFileNamePrefix(event string) string { return strings.ToLower(event) + "-hook-" }

// removeEnvFilesOfRepeatableEvent removes CLAUDE_ENV_FILE files of an earlier run, if the event can occur several times.
func (r *Runner) removeEnvFilesOfRepeatableEvent(event string) {
	if event != "CwdChanged" && event != "FileChanged" {
		return
	}
	for _, f := range r.existingEnvFilePaths(event) {
		_ = os.Remove(f) // if a file cannot be removed, later commands run its old code again
	}
}

// existingEnvFilePaths returns the files that hooks of the event wrote, in configured order.
func (r *Runner) existingEnvFilePaths(event string) []string {
	files, err := filepath.Glob(filepath.Join(r.options.EnvDir, envFileNamePrefix(event)+"*.sh"))
	if err != nil {
		return nil
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return files
}

// ShellCodeForLaterCommands returns the shell code that hooks have written for later commands; empty means none.
func (r *Runner) ShellCodeForLaterCommands() string {
	if r.options.EnvDir == "" {
		return ""
	}
	var parts []string
	for _, event := range envFileEvents {
		for _, f := range r.existingEnvFilePaths(event) {
			if code, err := os.ReadFile(f); err == nil && len(strings.TrimSpace(string(code))) > 0 {
				parts = append(parts, strings.TrimSpace(string(code)))
			}
		}
	}
	return strings.Join(parts, "\n")
}

const maxResponseBytes = 1 << 20

// runHTTPHook sends the input to an HTTP hook. A 2xx response must have no body or a JSON body, which is interpreted like the standard
// output of a command. Any other response is an error, and so is a failed request. An error blocks only with onFailure "block".
func (r *Runner) runHTTPHook(ctx context.Context, c *eventRun, e *hookEntry) hookResult {
	isAllowed := func(pattern string) bool {
		return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$").MatchString(e.config.URL)
	}
	if allowed := r.options.HTTPLimits.URLs; allowed != nil && !slices.ContainsFunc(allowed, isAllowed) {
		return hookResult{outcome: outcomeError, missingVerdictReason: noVerdictBecauseInvalidOutput, stderr: "HTTP hook blocked: " + e.config.URL + " does not match any pattern in allowedHttpHookUrls"}
	}
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodPost, e.config.URL, bytes.NewReader(c.stdin))
	if err != nil {
		return failedHTTPRequestResult(ctx, limited, &url.URL{}, err)
	}
	req.Header = http.Header{
		"Accept": {"application/json, text/plain, */*"}, "Content-Type": {"application/json"}, "User-Agent": {claudecode.HTTPHookUserAgent}, "Connection": {"keep-alive"},
	}
	limits := r.options.HTTPLimits.EnvVars
	vars := slices.DeleteFunc(slices.Clone(e.config.AllowedEnvVars), func(name string) bool { return limits != nil && !slices.Contains(limits, name) })
	for name, value := range e.config.Headers {
		req.Header.Set(name, expandEnvForHeader(value, vars, r.options.Environ))
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // redirects are not followed
	if err != nil {
		return failedHTTPRequestResult(ctx, limited, req.URL, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes))
	if err != nil {
		return failedHTTPRequestResult(ctx, limited, req.URL, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return hookResult{exitCode: &resp.StatusCode, outcome: outcomeError, missingVerdictReason: noVerdictBecauseInvalidOutput, stderr: fmt.Sprintf("HTTP %d from %s", resp.StatusCode, e.config.URL)}
	}
	a := hookResult{stdout: string(body), exitCode: &resp.StatusCode, outcome: outcomeSuccess}
	if _, ok := parseJSONObjectText(a.stdout); !ok && strings.TrimSpace(a.stdout) != "" {
		a.outcome, a.missingVerdictReason = outcomeError, noVerdictBecauseInvalidOutput
		a.stderr = "HTTP hook must return JSON, but got non-JSON response body: " + a.stdout
		return a
	}
	a.interpretSuccessfulOutput(c.event)
	return a
}

// failedHTTPRequestResult returns the result of a request without a response, with the messages of the real CLI's HTTP client.
func failedHTTPRequestResult(ctx, timeoutCtx context.Context, to *url.URL, err error) hookResult {
	a := timeoutOrErrorResult(ctx, timeoutCtx, err)
	if a.outcome != outcomeError {
		return a
	}
	a.missingVerdictReason = noVerdictBecauseInvalidOutput
	_, isUnknownHost := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		a.stderr = "connect ECONNREFUSED " + to.Host
	case isUnknownHost:
		a.stderr = "getaddrinfo ENOTFOUND " + to.Hostname()
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		a.stderr = "socket hang up"
	case errors.Is(err, io.ErrUnexpectedEOF):
		a.stderr = "stream has been aborted"
	case to.Scheme != "http" && to.Scheme != "https":
		a.stderr = "Unsupported protocol " + to.Scheme + ":"
	}
	return a
}

var envVariableReferencePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)
})

// expandEnvForHeader replaces $NAME and ${NAME}. A name that is not allowed becomes empty. Line ends and NUL are removed from
// values, because they are invalid in a header.
func expandEnvForHeader(text string, allowed, environ []string) string {
	return envVariableReferencePattern().ReplaceAllStringFunc(text, func(m string) string {
		name := strings.Trim(m, "${}")
		if !slices.Contains(allowed, name) {
			return ""
		}
		return strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(proc.Getenv(environ, name))
	})
}
